"""Standard output that is full or closed, signals, names that are no text, lines that ask for more than there is."""

import contextlib
import io
import os
import signal
import sys

import pytest

from craftrl.cli import main
from craftrl.cli.stopping import Terminated

LINE = ["theory", "assumptions", "--world", "bits", "--horizon", "3", "--features", "4"]
COLLECT = ["collect", "--world", "bits", "--horizon", "3", "--features", "4", "--n", "5"]


def test_a_full_standard_output_is_told_in_one_sentence(monkeypatch, capsys):
    with open("/dev/full", "w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        assert main(LINE) == 2
    assert "No space left on device" in capsys.readouterr().err


def test_a_closed_standard_output_is_no_error(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    assert main(LINE) == 0
    sys.stdout.close()


def test_a_full_standard_error_leaves_the_exit_code_as_it_is(monkeypatch):
    with open("/dev/full", "w", buffering=1) as full:
        monkeypatch.setattr(sys, "stderr", full)
        assert main(["inspect", "missing.h5"]) == 2
        with contextlib.suppress(OSError):
            full.close()


@pytest.fixture
def nobody_answers_sigterm():
    """A Ray that ran in this process before may still do."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("nobody_answers_sigterm")
def test_a_command_that_is_terminated_says_so_and_leaves_no_parts(monkeypatch, tmp_path, capsys):
    def terminated(writer, agent, x, lengths):
        (writer.part / "begun").touch()
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("craftrl.data.shards.ShardWriter._append", terminated)
    assert main([*COLLECT, "--out", str(tmp_path / "x")]) == 143
    assert capsys.readouterr().err.startswith("Terminated; nothing is half-written")
    assert [path.name for path in tmp_path.iterdir()] == ["x.truth.npz"]  # whole, and gone on from
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_an_interruption_before_the_line_is_read(monkeypatch, capsys):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr("craftrl.cli.add_commands", interrupted)
    assert main(LINE) == 130
    assert capsys.readouterr().err.startswith("Interrupted; nothing is half-written")


@pytest.mark.parametrize(
    ("stop", "code", "word"), [(KeyboardInterrupt, 130, "Interrupted"), (Terminated, 143, "Terminated")]
)
def test_a_signal_in_the_middle_of_an_import_is_a_stop(monkeypatch, tmp_path, capsys, stop, code, word):
    def half_imported(*given):
        try:
            raise stop
        except KeyboardInterrupt as error:
            raise ImportError("initialization failed") from error  # as compiled modules do

    monkeypatch.setattr("craftrl.data.dataset.TrajectoryDataset.save", half_imported)
    assert main([*COLLECT, "--out", str(tmp_path / "x.h5")]) == code
    assert capsys.readouterr().err.startswith(f"{word}; nothing is half-written")


def test_memory_that_runs_out_is_told_with_what_was_asked_for(monkeypatch, tmp_path, capsys):
    def too_much(*given):
        raise MemoryError("Unable to allocate 9.00 GiB")

    monkeypatch.setattr("craftrl.data.dataset.TrajectoryDataset.save", too_much)
    assert main([*COLLECT, "--out", str(tmp_path / "x.h5")]) == 2
    assert "it does not (Unable to allocate 9.00 GiB)" in capsys.readouterr().err


def test_a_library_that_cannot_be_loaded_is_told_as_that(monkeypatch, tmp_path, capsys):
    def unloadable(*given):
        raise OSError("Could not find/load shared object file 'lib.so'")

    monkeypatch.setattr("craftrl.data.dataset.TrajectoryDataset.save", unloadable)
    assert main([*COLLECT, "--out", str(tmp_path / "x.h5")]) == 2
    assert capsys.readouterr().err.startswith("Every library must load; one did not (Could not find/load shared")


def test_names_that_are_no_text_are_printed_as_escapes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    written = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", written)
    assert main([*COLLECT, "--out", "\udcff"]) == 0
    assert b"\\udcff" in written.buffer.getvalue()


@pytest.mark.parametrize("name", ["", ".", "/", "..", "n" * 300])
def test_a_model_needs_a_name_before_any_work_is_done(name, capsys):
    assert main(["fit", "missing.h5", "--out", name]) == 2
    assert "The model must be a path" in capsys.readouterr().err


def test_more_features_than_fit_into_memory(capsys):
    assert main(["collect", "--world", "bits", "--features", "2000000000", "--n", "5", "--out", "x.h5"]) == 2
    assert "must fit into memory; that needs" in capsys.readouterr().err


def test_a_number_beyond_floats(capsys):
    with pytest.raises(SystemExit) as end:
        main(["theory", "sample-size", "--alpha", "1e999"])
    assert end.value.code == 2
    assert "must be a number or a fraction" in capsys.readouterr().err


def test_an_interruption_is_no_traceback(tmp_path, monkeypatch, capsys):
    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr("craftrl.paper.table1.run_one", interrupted)
    assert main(["reproduce", "table1", "--seeds", "1", "--quiet", "--out", str(tmp_path / "t")]) == 130
    assert "the same command goes on" in capsys.readouterr().err
