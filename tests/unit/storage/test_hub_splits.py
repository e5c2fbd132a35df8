"""Which files of a Hub's data set hold a split, as its README and their names say."""

import pytest

from storage.errors import HubError
from storage.hub_splits import Wanted, split_files

NAMES = ["README.md", "d/train.csv", "d/test.csv", "e/train.csv", "e/part-0.csv", "e/part-1.csv", "e/part-2.csv"]
FOLDERS = [{"config_name": "x", "data_dir": "d"}, {"config_name": "y", "data_dir": "./e/"}]


def files(configs, config=None, split="train", names=NAMES):
    return split_files(Wanted("a/b@c", config, split), names, configs)


def test_a_configuration_named_by_its_folder_is_that_folder_alone():
    assert files(FOLDERS, "x") == ("d/train.csv",)
    assert files(FOLDERS, "x", "test") == ("d/test.csv",)
    assert files(FOLDERS, "y") == ("e/train.csv",)
    assert files([{"config_name": "x", "data_dir": "d"}]) == ("d/train.csv",)
    whole = [{"config_name": "x", "data_dir": "d"}, {"config_name": "y", "data_dir": "e", "default": True}]
    assert files(whole, names=["d/a.csv", "e/a.csv", "e/b.csv"]) == ("e/a.csv", "e/b.csv")


def test_configurations_are_never_mixed():
    with pytest.raises(HubError, match=r"has the configurations x, y, expected one of them; set `hub_config`"):
        files(FOLDERS)


def test_patterns_are_inside_the_folder():
    configs = [{"data_dir": "e", "data_files": [{"split": "train", "path": "part-*"}]}]
    assert files(configs) == ("e/part-0.csv", "e/part-1.csv", "e/part-2.csv")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("e/part-[01].csv", ["e/part-0.csv", "e/part-1.csv"]),
        ("e/part-[1-9]*", ["e/part-1.csv", "e/part-2.csv"]),
        ("e/part-[!01].csv", ["e/part-2.csv"]),
        ("**/part-[0]*", ["e/part-0.csv"]),
        ("d[/]train.csv", []),
        ("e/part-[z-a].csv", []),
        (["d/train.csv", "e/train.csv"], ["d/train.csv", "e/train.csv"]),
    ],
)
def test_patterns_are_read_as_the_hub_s_client_reads_them(pattern, found):
    configs = [{"data_files": {"train": pattern, "test": "d/test.csv"}}]
    if found:
        assert list(files(configs)) == found
    else:
        with pytest.raises(HubError, match="no such split, it has test; correct `split`"):
            files(configs)


def test_a_configuration_without_a_file_is_named():
    with pytest.raises(HubError, match=r"no file of the configuration 'z'; correct or leave out `hub_config`"):
        files([], "z")
    with pytest.raises(HubError, match=r"no file of the configuration 'x'; correct or leave out `hub_config`"):
        files([{"config_name": "x", "data_dir": "f"}], "x")
    with pytest.raises(HubError, match="no file of data"):
        files([], names=["README.md"])
