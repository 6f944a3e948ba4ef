"""`craftrl report`: what it writes, and every complaint in one sentence with nothing left behind."""

import errno
import os
import re
from pathlib import Path

import numpy as np
import pytest
from report_models import bits, three_agents

from craftrl import InvalidParameterError
from craftrl.cli import main
from craftrl.report import write_report
from craftrl.report.markup import el, join, listed


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    model, tau = bits()
    model.save(place / "model")
    tau.save(place / "data.h5")
    return place


def complaint(capsys, *argv):
    capsys.readouterr()
    assert main(["report", *map(str, argv)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    return err


def test_the_command_writes_one_page(folder, tmp_path, capsys):
    out = tmp_path / "report.html"
    arguments = ["report", str(folder / "model"), str(folder / "data.h5"), "--diagnose", "1", "--out", str(out)]
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"Written to {out}\n"
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!DOCTYPE html>")
    assert "Report on model" in text
    assert len(text) < 300_000
    assert not re.search(r'(src|href)="(?!data:|#)', text)
    assert os.fspath(folder) not in text
    assert os.listdir(tmp_path) == ["report.html"]
    assert main([*arguments[:2], "--out", str(out), "--force"]) == 0
    assert "made without the data" in out.read_text(encoding="utf-8")


def test_complaints(folder, tmp_path, capsys):
    model, data, out = folder / "model", folder / "data.h5", tmp_path / "report.html"
    assert "NAME.html" in complaint(capsys, model, "--out", tmp_path / "report.pdf")
    assert "nothing" in complaint(capsys, tmp_path / "nothing", "--out", out)
    assert "nothing.h5" in complaint(capsys, model, tmp_path / "nothing.h5", "--out", out)
    assert "--diagnose needs the data" in complaint(capsys, model, "--diagnose", "2", "--out", out)
    _, tau = bits()
    tau.select(np.arange(1, tau.n)).save(tmp_path / "other.h5")
    assert "other data was given" in complaint(capsys, model, tmp_path / "other.h5", "--out", out)
    out.write_text("mine")
    assert "is there already" in complaint(capsys, model, data, "--out", out)
    assert out.read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == ["other.h5", "report.html"]


def test_a_full_disk_leaves_the_old_report(folder, tmp_path, capsys, monkeypatch):
    out = tmp_path / "report.html"
    out.write_text("mine")

    def full(path, text, **_):
        path.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    assert "There must be room for the report" in complaint(capsys, folder / "model", "--out", out, "--force")
    assert out.read_bytes() == b"mine"
    assert os.listdir(tmp_path) == ["report.html"]


def test_in_python_a_file_is_not_replaced_either(tmp_path):
    model, _ = bits()
    write_report(model, tmp_path / "a.html", title="mine")
    with pytest.raises(InvalidParameterError, match="overwrite=True"):
        write_report(model, tmp_path / "a.html")


def test_markup_escapes_what_is_no_markup():
    assert (
        el("p", "<b>", el("b", 1), class_='a"b', hidden=True, id=None)
        == '<p class="a&quot;b" hidden>&lt;b&gt;<b>1</b></p>'
    )
    assert join(["&", el("br")]) == "&amp;<br>"
    assert listed(["<"]) == "<ul><li>&lt;</li></ul>"


def test_names_of_agents_cannot_break_the_page(tmp_path):
    model, x, agent = three_agents()
    write_report(model, tmp_path / "a.html", x, agent, title="<i>mine</i>", n_resamples=0)
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert text.count("</script>") == 2
    assert '<b>"A"' not in text
    assert "<i>" not in text
