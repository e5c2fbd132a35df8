"""A wrong call is refused in one line that names the remedy, before heavy imports and before a server is named.

And a command leaves the process in order: garbage collection, standard streams.
"""

import json
import shlex
import signal
import subprocess
import sys
import tomllib

import pytest

from tests.servers import ROOT

EMBEDDED = "evaluate embedded:bert-mini --suite"
LABELS = "names a column of labels, but no file of labels is given. Add"
SMALL = "too little text: sentences of 20 to 1,000 characters: 1, documents: 1; none is left"
REFUSED = [  # call, exit code, part of the message
    ("runn", 2, 'bsl: Unknown command "runn". Did you mean "run"? Available commands: run, sweep, '),
    ("xyzzy", 2, "evaluate, compare, embed, ... See `bsl --help`\n"),
    ("run tiny --sett x", 2, "bsl: Unknown option: --sett. Did you mean --set? See `bsl run --help`\n"),
    ("run tiny nli", 2, "bsl: unexpected argument 'nli'. See `bsl run --help`\n"),
    ("run", 2, "RECIPE requires an argument. See `bsl run --help`"),
    ("artifacts", 2, "bsl: expected an action: ls, show, verify, gc, delete, export. See `bsl artifacts --help`"),
    ("artifacts lss", 2, 'Did you mean "ls"?'),
    ("ui --port x", 2, 'unable to convert "x" into int'),
    ("adapt own.txt --columns", 2, "--columns requires at least 1"),
    ("adapt own.txt --views 'round trips'", 2, '"round-trips"'),
    ("run tinny", 2, "unknown recipe 'tinny'. Did you mean 'tiny'? `bsl recipes` lists all"),
    (
        "run BSL-BERT",
        2,
        "unknown recipe 'BSL-BERT'. It is a published row: bsl reproduce BSL-BERT. `bsl recipes` lists",
    ),
    ("mirror hub stsb/test --set training.lr=1", 2, "--set: has an effect only with a recipe. Name one: recipe:NAME"),
    ("artifacts show report/abc", 1, "store (--store, BSL_STORE), expected the key of one artifact. List them with"),
    ("run tiny --set training.objective.momentun=1", 2, "training.objective.momentun: unknown field. Did you mean"),
    ("run tiny-flow --set training.objective.k=8", 2, "tiny-flow does not train. Set training.objective as well"),
    ("run tiny --set training.lr", 2, "--set training.lr: expected FIELD=VALUE"),
    ("run tiny --set training..lr=1", 2, "--set training..lr=1: expected FIELD=VALUE"),
    ("run tiny --set training.lr=1e-3 --set training.lr.peak=1", 2, "training.lr.peak=1 and --set training.lr=1e-3"),
    ("run tiny --set training.lr=1e-3 --set training=5", 2, "--set training=5 and --set training.lr=1e-3 contradict"),
    ("run tiny --set 'training={\"lr\": 1e-3}' --set training=5", 2, '--set training=5 and --set training={"lr": 1e-3'),
    ("run tiny --dry-run --processes 0", 2, "bsl: processes (BSL_PROCESSES): Input should be"),
    ("run tiny --set encoder.model=embedded:bert-mni", 1, "Did you mean 'embedded:bert-mini'?"),
    ("doctor tiny --set training.lr=" + "[" * 100_000, 2, "nested too deeply"),
    ("artifacts gc --older-than soon", 2, 'unable to convert "soon" into timedelta. See `bsl artifacts gc --help`'),
    ("artifacts gc --older-than=-1d", 2, "expected a time up to 36500d, such as 12h or 30d"),
    ("artifacts ls --store own.txt", 1, "own.txt is a file, expected a folder. Choose another folder"),
    ("artifacts gc --store own.txt/store", 1, "own.txt is a file, expected a folder. Choose another folder"),
    ("compare sweep/latest report/latest", 2, "sweep/latest: expected report/<key>"),
    ("compare report/latest embedded:bert-mini", 2, "`bsl evaluate` compares encoders"),
    ("compare report/latest", 1, "contains no report"),
    # names of files, datasets, encoders and sets
    ("adapt won.txt", 1, "no such file, folder or dataset (did you mean 'own.txt'?)"),
    ("adapt letters/nowhere.csv", 1, "bsl: letters/nowhere.csv: no such file, folder or dataset. Correct the name.\n"),
    ("adapt ~nobody-here/own.txt", 1, "~nobody-here/own.txt: no such file, folder or dataset"),
    ("adapt zip://own.txt::none.zip", 1, "zip://own.txt::none.zip: cannot be read"),
    ("adapt stsb/tets", 1, "(did you mean 'stsb/test'?), expected one of train, dev, test"),
    ("adapt stsbb", 1, "(did you mean 'stsb'?)"),
    ("adapt embedded:nli-sampel", 1, "Did you mean 'embedded:nli-sample'?"),
    ("adapt ''", 1, "'' is an empty path"),
    ("adapt own.txt --encoder embedded:mini-sentnce", 1, "Did you mean 'embedded:mini-sentence'?"),
    ("adapt own.txt --labels onw.txt", 1, "(did you mean 'own.txt'?)"),
    ("adapt own.txt --suite labels:onw.txt", 1, "(did you mean 'own.txt'?)"),
    ("adapt own.txt --suite own:onw.txt", 1, "(did you mean 'own.txt'?)"),
    ("adapt own.txt --suite stsb/tst", 1, "(did you mean 'stsb/test'?)"),
    ("evaluate ~nobody-here/encoder", 1, "~nobody-here/encoder: no such folder"),
    ("evaluate own.csv", 1, "own.csv: is a file, expected a model's folder with config.json or modules.json. Name a"),
    ("evaluate words.vec", 1, "words.vec: is a folder, expected a file of word vectors"),
    ("evaluate embedded:bert-mni", 1, "Did you mean 'embedded:bert-mini'?"),
    ("evaluate ./glove.300d.txt", 1, "no such file, expected word vectors"),
    ("evaluate embedded:stsb", 1, "embedded:stsb is not a model: it contains scored-pairs, expected sentence-encoder"),
    ("evaluate embedded:mini-sentence stsb", 2, "stsb is an evaluation set, expected an encoder. Score on it with --s"),
    ("adapt embedded:mini-sentence", 1, "embedded:mini-sentence is not text: it contains sentence-encoder, expected"),
    ("adapt own.txt --pooling mean", 2, "bsl: Unknown option: --pooling. See `bsl adapt --help`"),
    # an option and --set of its field
    (
        "run tiny --set training.precision=fp32 --precision bf16",
        2,
        "--precision and --set training.precision=fp32",
    ),
    (
        "sweep tiny --over training.lr=1 --set evaluation.precision=fp32 --precision bf16",
        2,
        "--set evaluation.precision=fp32 contradict",
    ),
    ("adapt own.txt --views crops --set views=both", 2, "bsl: --views and --set views=both contradict each other"),
    (
        "adapt own.txt --encoder embedded:mini-sentence --set encoder.model=x",
        2,
        "--encoder and --set encoder.mode",
    ),
    (
        "adapt own.txt --suite stsb --set 'evaluation.sets=[\"sts\"]'",
        2,
        "--suite and --set evaluation.sets=['sts'",
    ),
    (
        f"{EMBEDDED} stsb --max-length 9 --set reading.max_length=8",
        2,
        "--max-length and --set reading.max_length=",
    ),
    (f"{EMBEDDED} stsb --no-marks --set reading.words.marks=true", 2, "bsl: --no-marks and --set reading.words.marks"),
    (
        "run tiny --cluster nix",
        2,
        "cluster (BSL_CLUSTER): 'nix' is not the address of a Dask scheduler (expected tcp://",
    ),
    ("doctor tiny --cluster https://a:1", 2, "'https://a:1' is not the address of a Dask scheduler"),
    ("adapt own.txt --mirror onw", 2, '"onw" for --mirror. No such folder'),
    ("mirror hub stsb --mirror onw", 2, '"onw" for --mirror. No such folder'),
    ("embed embedded:mini-sentence -own.txt out.parquet", 2, "For the file of this name, write ./-own.txt."),
    ("embed embedded:mini-sentence own.csv out.parquet --column bdy", 1, "column 'bdy' is missing; found "),
    ("pairs embedded:mini-sentence own.csv --keep idd", 1, "column 'idd' is missing; found "),
    ("evaluate models", 1, "models is not a model: it contains nothing, expected config.json or modules.json"),
    (f"{EMBEDDED} own:onw.txt", 1, "(did you mean 'own.txt'?)"),
    (f"{EMBEDDED} labels:onw.txt", 1, "(did you mean 'own.txt'?)"),
    (f"{EMBEDDED} own:", 1, "'' is an empty path"),
    (f"{EMBEDDED} embedded:stsb/foo", 1, "no split 'foo', expected one of"),
    (f"{EMBEDDED} sts_17", 2, "bsl: unknown suite or set 'sts_17'. Did you mean 'sts17'? `bsl evaluate --help` lists"),
    (f"{EMBEDDED} STS17", 2, "bsl: unknown suite or set 'STS17'. Did you mean 'sts17'?"),
    (f"{EMBEDDED} nosuch", 2, "bsl: unknown suite or set 'nosuch'. `bsl"),
    ("sweep own --text onw.txt", 1, "(did you mean 'own.txt'?)"),
    ("sweep own --text own.txt --encoder checkpoint/0000", 1, "'checkpoint/0000' matches nothing"),
    ("sweep tiny --over training.lr=1e-4,1e-3 --set 'evaluation.sets=[\"stsb/foo\"]'", 1, "no split 'foo'"),
    ("search embedded:mini-sentence onw.txt 'a query'", 1, "(did you mean 'own.txt'?)"),
    ("search embedded:bert-mini table.xlsx 'a query'", 1, "table.xlsx: unknown file suffix, expected one of .txt"),
    ("search embedded:mini-sentence '' 'a query'", 1, "'' is an empty path"),
    ("embed embedded:mini-sentnce own.txt out.parquet", 1, "Did you mean 'embedded:mini-sentence'?"),
    ("embed embedded:bert-mini table.xlsx out.parquet", 1, "Save the sheet as table.csv in the spreadsheet"),
    ("embed embedded:bert-mini own.txt own.parquet", 1, "own.parquet: already exists. Name a new file"),
    ("embed embedded:bert-mini . ./own.parquet", 1, "own.parquet: is also the input, and nothing is overwritten"),
    ("embed embedded:bert-mini own.txt out.csv", 2, "out.csv: expected a name that ends in .parquet, such as vectors."),
    ("classify embedded:bert-mini own.csv out.csv", 1, "no such folder (expected the folder of an exported encoder"),
    ("classify report/latest own.csv out.csv", 1, "contains no report, so there is no latest one. Make one first"),
    ("pairs ./modls own.txt", 1, "(did you mean 'models'?)"),
    ("pairs embedded:bert-mini own.txt --above 90", 2, "--above 90: expected a cosine"),
    ("pairs embedded:bert-mini own.txt --above nan", 2, "--above nan: expected a cosine"),
    ("pairs embedded:bert-mini own.txt --top 0", 2, 'Invalid value "0" for --top. Must be >= 1'),
    ("search embedded:bert-mini own.txt a --top 0", 2, 'Invalid value "0" for --top. Must be >= 1'),
    ("search embedded:bert-mini own.txt", 2, "expected a query, for example bsl search MODEL CORPUS"),
    ("export embedded:bert-mni out", 1, "Did you mean 'embedded:bert-mini'?"),
    ("export embedded:bert-mini out --static --text onw.txt", 1, "(did you mean 'own.txt'?)"),
    ("export embedded:bert-mini models", 1, "models: already exists. Name a new folder"),
    ("embed embedded:bert-mini own.txt s3://b/out.parquet", 2, "bsl: s3://b/out.parquet: is an address, expected a pa"),
    ("classify report/latest own.csv file:///tmp/out.csv", 2, "is an address, expected a path on this machine. Write"),
    ("export embedded:bert-mini s3://b/out", 2, "is an address, expected a path on this machine. Write there, and"),
    ("artifacts export report/latest s3://b/out", 2, "is an address, expected a path on this machine. Write there"),
    ("export embedded:bert-mini own.txt/out", 1, "own.txt/out: a part of the path is a file"),
    ("export embedded:bert-mini out --static --static-dims 3", 2, "bsl: static_dims: Input should"),
    ("export embedded:bert-mini out --static-dims 64", 2, "bsl: --static-dims has an effect only with --static. Add"),
    ("export embedded:bert-mini out --onnx --text a.txt", 2, "bsl: --text has an effect only with --int8 or --dims or"),
    ("export embedded:bert-mini out --dims 64,no", 2, "--dims: expected numbers of dimensions such as 256,128,64"),
    # settings of an adaptation and an evaluation
    ("adapt own.txt --set training.lrr=1", 2, "training.lrr: unknown field. Did you mean 'training.lr'"),
    (
        "adapt own.txt --set training=null",
        2,
        "training: expected an object with the fields objective, optimizer, lr, ",
    ),
    (
        "adapt own.txt --set training.objective.dims=64",
        2,
        "objective.dims: expected a list, for example [64] (found 64)",
    ),
    ("adapt own.txt --text-column body", 2, f"--text-column: {LABELS} --labels FILE"),
    ("adapt own.txt --lang deutsch", 2, "bsl: lang: expected: ISO 639 code of the text, for example `de`"),
    ("adapt own.txt --labels own.txt --set training.max_steps=9", 2, "--set training: no effect, because the encoder"),
    ("adapt own.txt --set label_training.lr=1e-5", 2, "the encoder trains on views. Set the field of training instead"),
    ("adapt own.txt --for classify", 2, "--for classify: needs other labels (found no labels, expected texts"),
    ("adapt few.csv --labels few.csv --for similarity", 2, "found texts with a class, expected pairs"),
    ("adapt own.txt --translators nosuch", 2, "bsl: translators: unknown name. Expected embedded, "),
    ("adapt own.txt --config none.json", 2, "--config none.json: No such file or directory. Name a JSON"),
    ("adapt own.txt --config cut.json", 2, "--config cut.json: expected a JSON object of settings"),
    ("adapt own.txt --config null.json --suite sts", 2, "evaluation is None, expected a JSON object of settings"),
    ("adapt own.csv --columns boddy", 1, "column 'boddy' is missing"),
    ("adapt own.csv --title subject", 1, ". Name the right columns with `--title`.\n"),
    ("adapt latin.txt", 1, "latin.txt, line 1: not UTF-8"),
    ("adapt latin.txt", 1, "iconv -f "),
    ("adapt own.txt", 1, SMALL),
    ("adapt few.txt", 1, "too few documents: expected 30 questions about 10 held-out documents"),
    ("adapt few.txt titles.txt", 1, "; 90 sentences shorter than 20 and 0 longer than 1,000 characters"),
    ("adapt blank.csv --columns text", 1, "the text columns are empty: 'text' of blank. Name the columns"),
    (
        "evaluate embedded:bert-mini --set seed=1",
        2,
        "seed: unknown field. Did you mean 'bootstrap.seed' or 'probe.seed' ",
    ),
    ("evaluate embedded:bert-mini --cnn 1,2", 2, "--cnn 1,2: expected odd numbers such as 1,3,5"),
    ("evaluate embedded:bert-mini --pooling cls+maen", 2, "reading.pooling: unknown pooling 'maen', expected"),
    ("evaluate embedded:bert-mini --label-column queue", 2, f"--label-column: {LABELS} --suite labels:FILE"),
    (f"{EMBEDDED} own:own.txt --document writer", 2, f"--document: {LABELS} --suite labels:FILE"),
    ("evaluate ''", 1, "'' is an empty name, expected a folder, a name on the Hub (OWNER/NAME), or embedded:NAME"),
    ("adapt own.txt --encoder ''", 1, "'' is an empty name"),
    ("embed embedded:bert-mini own.txt out.parquet --encoding x", 2, "bsl: encoding: 'x' is not an encoding of text"),
    # sweeps and reproductions
    ("sweep own", 2, "study own compares methods on your text. Name it: bsl sweep own --text FILE"),
    ("sweep own --labels own.txt", 2, "--labels: needs --text"),
    ("sweep own --text own.txt", 1, SMALL),
    ("sweep own --text own.txt --label-column queue", 2, f"--label-column: {LABELS} --labels FILE"),
    ("sweep own --text own.txt --over variant=crop", 2, "unknown variant 'crop'"),
    ("sweep own --text own.txt --over training.lr=1e-4,1e-3", 2, "training.lr: study own varies only its points"),
    (
        "sweep own --text own.txt --set ingest.own_text.hold_uot.limit=3",
        2,
        "Did you mean 'ingest.own_text.hold_out.limit'?",
    ),
    ("sweep tiny-batch --text own.txt", 2, "tiny-batch: only study own takes a text"),
    ("sweep tiny-batch --lang de", 2, "--lang: only study own reads your text"),
    ("sweep tiny --over training.epoch=1", 2, "training.epoch: unknown field. Did you mean 'training.epochs'?"),
    ("sweep tiny --over training.lr=abc", 2, "training.lr: Input should be a number, not text"),
    ("sweep tiny --over training.lr=[1e-4,3e-4", 2, "training.lr=[1e-4,3e-4: not a JSON list. Close the list"),
    ("sweep tiny --over training.lr=1e-3 --set training.lr=1e-4", 2, "training.lr: the sweep varies the field, but"),
    ("sweep tiny --over training.precision=bf16 --precision fp32", 2, "training.precision: the sweep varies the field"),
    ("sweep momentum --set training.objective.momentum=0.9", 2, "training.objective.momentum: the sweep varies the fi"),
    ("sweep tiny --over training.seed=0,1", 2, "--seeds sets the number of runs"),
    ("sweep tiny --over training.lr=1 --seeds 0", 2, "--seeds 0: expected 1 to 1000"),
    ("sweep tiny --over training.lr=1 --workers 0", 2, 'Invalid value "0" for --workers. Must be >= 1'),
    ("sweep tiny --over training.lr=1 --workers 2 --cluster tcp://a:1", 2, "--workers 2: the workers of --cluster or"),
    ("reproduce IS-BERT", 2, "unknown row or recipe 'IS-BERT'"),
    ("reproduce bsl-bert", 2, "Did you mean 'BSL-BERT'? `bsl recipes --all` lists all recipes and rows"),
    ("reproduce tiny --set training.seed=7", 2, "--seeds sets the number of runs"),
    ("reproduce tiny --seeds 0", 2, "--seeds 0: expected 1 to 1000"),
    ("reproduce tiny --margin inf", 2, "--margin inf: expected a number of points above 0"),
    ("reproduce tiny --margin 0", 2, "--margin 0.0: expected a number of points above 0"),
    ("reproduce BSL-BERT --set training.momentun=1", 2, "training.momentun: unknown field"),
]
CODE = """
import contextlib, io, json, sys
from bsl.flows.cli.main import main
ended = []
for call in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(call)
    heavy = [name for name in ("prefect", "torch", "transformers", "sklearn") if name in sys.modules]
    ended.append([code, out.getvalue(), err.getvalue(), heavy])
print(json.dumps(ended))
"""
FILES = {
    "own.txt": "A dog runs across a field of snow.\n",
    "-own.txt": "A dog runs across a field of snow.\n",
    "titles.txt": "".join(f"Title {number}\n" for number in range(90)),
    "few.txt": "A cat sleeps on the sofa.\nA dog runs in the park.\n",
    "few.csv": "text,label\nA cat sleeps.,cat\nA dog runs.,dog\nA cat runs.,cat\nA dog naps.,dog\n",
    "own.csv": "id,body\n1,A dog runs across a field of snow.\n",
    "blank.csv": "title,text\nA title,\n",
    "long.txt": "".join(f"A dog runs across field {number} of snow.\n" for number in range(600)),
    "cut.json": '{"evaluation":',
    "null.json": '{"evaluation": null}',
    "table.xlsx": "",
    "own.parquet": "",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "latin.txt").write_bytes("Schönes Wetter in Köln.\n".encode("latin-1") * 9)
    (tmp_path / "models").mkdir()
    (tmp_path / "words.vec").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_wrong_call_is_refused_with_its_remedy_before_heavy_imports():
    """One process makes all calls: a heavy import of any of them would be seen after it."""
    asked = json.dumps([shlex.split(call) for call, _, _ in REFUSED])
    done = subprocess.run([sys.executable, "-c", CODE], input=asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for (call, expected, message), (code, out, err, heavy) in zip(REFUSED, json.loads(done.stdout), strict=True):
        assert (code, out, heavy) == (expected, "", []), (call[:99], err)
        assert message in err, call[:99]
        assert "pydantic" not in err, call[:99]
        assert err.count("\n") == 1, call[:99]


def test_main_raises_gc_threshold_and_freezes_objects_at_exit():
    # Registered before the command, so that it runs after the command's own.
    code = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 10_000))
from bsl.flows.cli.main import main
main([])
print(gc.get_threshold()[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-2:] == ["10000", "True"]


STREAMS = """
import sys
from pathlib import Path
from bsl.flows.cli.main import main
from bsl.flows.prefect_server.server import listen
code = main(["--version"])
with listen(0) as socket:
    found = [code, socket.fileno() > 2, *(stream is not None for stream in (sys.stdin, sys.stdout, sys.stderr))]
Path("found").write_text(repr(found))
"""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-"])
def test_closed_streams_are_opened_before_other_files(tmp_path, closed):
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", sys.executable, "-c", STREAMS]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "found").read_text() == repr([0, *4 * [True]])


INTERRUPTED = """
import signal, sys
from bsl.flows.cli.main import main

def interrupt(event, values):
    if event == "os.scandir" and str(values[0]).endswith("corpus"):
        signal.raise_signal(signal.SIGINT)

sys.addaudithook(interrupt)
sys.exit(main(["artifacts", "ls", "--store", "store"]))
"""


def test_ctrl_c_of_a_command_without_stages_promises_no_cached_stage(tmp_path):
    (tmp_path / "store" / "corpus").mkdir(parents=True)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bsl: interrupted\n")


IMPORTING = """
import signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "cyclopts":
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Finder())
from bsl.flows.cli.__main__ import command
sys.exit(command())
"""


def test_ctrl_c_during_imports_is_quiet():
    done = subprocess.run([sys.executable, "-c", IMPORTING], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bsl: interrupted\n")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["bsl"] == "bsl.flows.cli.__main__:command"


AT_EXIT = """
import atexit, signal, sys
from bsl.flows.cli.__main__ import command

sys.argv = ["bsl", "--version"]
atexit.register(signal.raise_signal, signal.SIGINT)
sys.exit(command())
"""


def test_ctrl_c_at_exit_is_quiet():
    """Regression: a second Ctrl-C, while the server's end was awaited, printed a traceback."""
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")
