"""What the parser refuses gets one sentence, as every other refusal does."""

import pytest
from craftrl.data.places import target

from craftrl.cli import main
from craftrl.errors import InvalidParameterError


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("fit data.h5 --out model --epochs x", "--epochs: must be a whole number of at least 1; 'x' was given"),
        (
            "collect --world bits --n \u00b2 --out data.h5",
            "--n: must be a whole number of at least 1; '\u00b2' was given",
        ),
        (f"reproduce table1 --seeds {'9' * 5000}", "a whole number of at least 1, below 10**18; '9999"),
        (f"fit data.h5 --out model --oracle {'n' * 5000}", "invalid choice: 'nnnn"),
        ("collect --nonsense", "required: "),
        ("reproduce figures --seed -1", "--seed: "),
    ],
)
def test_a_line_that_cannot_be_read_gets_one_sentence(line, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.endswith(" --help.\n")
    assert err.count("\n") == 1
    assert len(err) < 400


@pytest.mark.parametrize(
    "line", ["reproduce worlds --out \0", "reproduce figures --out \0", "reproduce agents --out .."]
)
def test_a_results_folder_must_be_one(line, capsys):
    assert main(line.split(" ")) == 2
    assert capsys.readouterr().err.startswith("The ")


def test_names_of_a_url_that_lost_a_slash_are_no_folders():
    with pytest.raises(InvalidParameterError, match="a URL has two slashes"):
        target("The model", "s3:/bucket/name")
