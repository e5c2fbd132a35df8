"""Cards tell the user's files apart by as few folders as necessary."""

from bsl.tasks.reporting.public_names import public_names, with_public_names
from tests.every import every


@every(
    [
        (["labels:/home/me/rows.csv", "own:/home/me/texts/", "stsb"], ["labels:rows.csv", "own:texts"]),
        (["labels:/me/a/rows.csv", "labels:/me/b/rows.csv"], ["labels:a/rows.csv", "labels:b/rows.csv"]),
        (
            ["labels:/a/x/r.csv", "labels:/b/x/r.csv", "own:/b/r.csv"],
            ["labels:a/x/r.csv", "labels:b/x/r.csv", "own:r.csv"],
        ),
        (["labels:rows.csv", "labels:/a/rows.csv"], ["labels:rows.csv", "labels:a/rows.csv"]),
        (
            ["labels:/a/r.csv#label=x/y", "labels:/a/r.csv#label=z", "labels:/a#b/r.csv"],
            ["labels:r.csv#label=x/y", "labels:r.csv#label=z", "labels:r.csv"],
        ),
    ]
)
def test_public_names_keep_the_folders_that_distinguish_them(names, public):
    assert list(public_names(names).values()) == public


def test_a_name_that_begins_with_another_is_replaced_as_a_whole():
    names = public_names(["labels:/a/r", "labels:/a/r/s"])
    assert with_public_names("on labels:/a/r/s and labels:/a/r", names) == "on labels:s and labels:r"
