"""USEB and clustering sets are read in their own layouts and scored as by a restatement with scikit-learn."""

import numpy as np
import polars as pl
import pytest
from scipy.stats import spearmanr
from sklearn.cluster import MiniBatchKMeans
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.metrics import average_precision_score, homogeneity_completeness_v_measure

from models.corpus.normalize import sentence_ids
from models.evaluation.config import BootstrapConfig
from storage.errors import SourceError
from storage.readers.benchmarks.clustering import CLUSTERS, read_clusters
from storage.readers.read_report import ReadReport
from storage.sources.read import read_source
from storage.sources.sources import SourceSpec, resolve_source
from tasks.corpus.evaluation_sets import rows_of
from tasks.embedding.vectors import Vectors
from tasks.evaluation.kinds import available, find_set, kind_of, names_of, tables
from tasks.evaluation.python_api import evaluate
from tasks.rendering.paper_tables import paper_tables
from tasks.stage.run_context import RunContext
from tests.domain_files import GROUPS, write_clusters, write_useb

DRAWS = BootstrapConfig(resamples=200)
PRECISION = "average precision"


class Words:
    """Bag-of-words counts: a real, if poor, encoder, whose cosines tie."""

    def __init__(self):
        self.counts = CountVectorizer(max_features=12).fit([text for group in GROUPS for text in group])

    def encode(self, texts):
        return self.counts.transform(texts).toarray() + 0.01

    def cosine(self, one, two):
        a, b = self.encode([one.strip(), two.strip()])
        return np.float32(a @ b / np.sqrt((a @ a) * (b @ b)))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return RunContext(mirror=str(write_clusters(write_useb(tmp_path_factory.mktemp("mirror")))))


@pytest.fixture(scope="module")
def found(site):
    return evaluate(Words(), ["useb", "clustering"], site, DRAWS).scores


def figures(found, dataset, subset="all"):
    rows = found.filter(dataset=dataset, subset=subset)
    return dict(rows.select("metric", "value").rows())


def order(scores):
    """Return indices by falling score; ties keep their order."""
    return sorted(range(len(scores)), key=lambda place: -scores[place])


def hits(names, right):
    return [place for place, name in enumerate(names, 1) if name in right]


def test_askubuntu_scores_match_reranking_of_bm25_candidates(found):
    words, titles = Words(), {f"{10 * g + n}": text for g, group in enumerate(GROUPS) for n, text in enumerate(group)}
    asked = {"0": (["1", "2"], ["22", "11", "1", "2", "31", "32"]), "20": (["22"], ["1", "22", "12"])}
    expected = {PRECISION: [], "p@1": [], "p@5": [], "mrr": []}
    for query, (right, by_bm25) in asked.items():
        scores = [words.cosine(titles[query], titles[name]) for name in by_bm25]
        places = hits([by_bm25[place] for place in order(scores)], right)
        expected[PRECISION].append(np.mean([(n + 1) / place for n, place in enumerate(places)]))
        expected["p@1"].append(1 in places)
        expected["p@5"].append(sum(place <= 5 for place in places) / min(5, len(by_bm25)))
        expected["mrr"].append(1 / places[0])
    assert figures(found, "askubuntu") == pytest.approx({name: np.mean(values) for name, values in expected.items()})
    assert found.filter(dataset="askubuntu")["n"].to_list() == [2] * 4  # one query has no answer


def test_cqadupstack_searches_each_forum_excluding_its_queries(found):
    words = Words()
    posts = {f"{g}{n}": text for g, group in enumerate(GROUPS) for n, text in enumerate(group)}
    forums = {
        "android": (posts, {"00": ["01", "02"], "10": ["11"]}),
        "unix": ({k: v for k, v in posts.items() if k[1] != "2"}, {"30": ["31"], "20": ["21", "11"]}),
    }
    means = {}
    for forum, (corpus, asked) in forums.items():
        pool = [name for name in corpus if name not in asked]
        precisions, gains = [], []
        for query, right in asked.items():
            scores = [words.cosine(corpus[query], corpus[name]) for name in pool]
            places = hits([pool[place] for place in order(scores)], right)
            precisions.append(average_precision_score([name in right for name in pool], scores))
            ideal = sum(1 / np.log2(place + 1) for place in range(1, len(right) + 1))
            gains.append(sum(1 / np.log2(place + 1) for place in places if place <= 10) / ideal)
        means[forum] = {PRECISION: np.mean(precisions), "ndcg@10": np.mean(gains)}
        assert figures(found, "cqadupstack", forum) == pytest.approx(means[forum])
    whole = {metric: np.mean([mean[metric] for mean in means.values()]) for metric in (PRECISION, "ndcg@10")}
    assert figures(found, "cqadupstack") == pytest.approx(whole)


def test_scidocs_scores_match_trec_eval(found):
    """Ties are broken by name, last first; a paper without a title counts as an answer that was not found."""
    words, titles = Words(), {f"p{g}{n}": text for g, group in enumerate(GROUPS) for n, text in enumerate(group)}
    tasks = {
        "cite": {"p00": (["p31", "p11", "p01"], ["p01", "untitled"])},
        "cocite": {"p10": (["p12", "p11", "p00"], ["p11", "p12"])},
        "coview": {"p20": (["p22", "p21"], ["p22"]), "p30": (["p31", "p02"], ["p02"])},
        "coread": {"p30": (["p31", "p01"], ["p31"])},
    }
    means = []
    for task, queries in tasks.items():
        values = []
        for query, (names, right) in queries.items():
            scores = [words.cosine(titles[query], titles[name]) for name in names]
            places = hits([names[place] for place in order(scores)], right)
            ideal = sum(1 / np.log2(place + 1) for place in range(1, len(right) + 1))
            gain = sum(1 / np.log2(place + 1) for place in places) / ideal
            values.append((sum((n + 1) / place for n, place in enumerate(places)) / len(right), gain))
        means.append(np.mean(values, axis=0))
        assert figures(found, "scidocs", task) == pytest.approx(dict(zip((PRECISION, "ndcg"), means[-1], strict=True)))
    assert figures(found, "scidocs") == pytest.approx(
        dict(zip((PRECISION, "ndcg"), np.mean(means, axis=0), strict=True))
    )


def test_twitterpara_average_precision_excludes_undecided_pairs(found, site):
    words, means = Words(), []
    table = rows_of(find_set(site, "twitterpara"))["test"]
    for subset in ("twitterurl", "pit"):
        rows = table.filter(subset=subset)
        cosines = np.array([words.cosine(one, two) for one, two in rows.select("sentence1", "sentence2").rows()])
        votes = rows["votes"].to_numpy()
        precision = average_precision_score(votes[votes != 3] > 3, cosines[votes != 3])
        means.append((precision, spearmanr(cosines, votes).statistic))
        expected = dict(zip((PRECISION, "spearman"), means[-1], strict=True))
        assert figures(found, "twitterpara", subset) == pytest.approx(expected)
    assert figures(found, "twitterpara")[PRECISION] == pytest.approx(np.mean(means, axis=0)[0])
    assert table["votes"].to_list()[:6] == [5, 4, 3, 1, 0, 2]


@pytest.mark.parametrize("name", ["askubuntu", "twitterpara"])
def test_bootstrap_draws_are_shared_across_systems(found, site, name):
    wanted = find_set(site, name)
    texts = wanted.sentences().unique()
    ids = pl.DataFrame({"text": texts}).select(sentence_ids(pl.col("text"))).to_series().to_list()
    vectors = Vectors("words", dict(zip(ids, range(len(ids)), strict=True)), {}, Words().encode(texts.to_list()))
    (drawn,) = kind_of(name).draws(wanted, [[vectors, vectors], [vectors]], DRAWS)
    assert (drawn.name, drawn.metric, drawn.protocol) == (f"{name} test", PRECISION, "useb")
    first, second = drawn.systems
    assert first.figures == pytest.approx([figures(found, name)[PRECISION]] * 2)
    assert first.draws.shape == (DRAWS.resamples, 2)
    np.testing.assert_array_equal(first.draws[:, 1], second.draws[:, 0])


def test_clustering_scores_match_seeded_mteb_v_measure(found):
    texts = [text for group in GROUPS for text in group]
    labels = [number for number, group in enumerate(GROUPS) for _ in group]
    values = []
    for part, gold in ((texts, labels), (texts[::-1][:9], labels[::-1][:9])):
        vectors = Words().encode(part).astype(np.float32)
        groups = MiniBatchKMeans(len(set(gold)), batch_size=500, n_init="auto", random_state=0).fit(vectors).labels_
        values.append(homogeneity_completeness_v_measure(gold, groups)[2])
    for name in ("twentynewsgroups", "stackexchange"):
        (row,) = found.filter(dataset=name).to_dicts()
        assert row["value"] == pytest.approx(np.mean(values))
        assert (row["metric"], row["protocol"], row["n"]) == ("v-measure", "mteb", 21)
        assert row["ci_low"] <= row["value"] <= row["ci_high"]


def test_tables_have_averages_and_intervals_contain_their_scores(found):
    drawn = dict(paper_tables(found.with_columns(model=pl.lit("words")), tables()))
    (line,) = drawn["USEB"]
    cells = [float(line[heading]) for heading in ("AskU.", "CQADup.", "TwitterP.", "SciD.")]
    assert float(line["Avg."]) == pytest.approx(np.mean(cells), abs=0.01)
    assert line["figure"] == f"{PRECISION}, useb"
    assert list(drawn["Clustering"][0])[2:] == ["20News", "StackEx.", "Avg."]
    shown = found.filter(pl.col("ci_low").is_not_nan())
    assert (shown["ci_low"] <= shown["value"] + 1e-9).all()
    assert (shown["value"] <= shown["ci_high"] + 1e-9).all()
    assert found["signature"].str.contains("protocol:useb|protocol:mteb").all()


def test_dev_split_is_selected_by_name(site):
    sets = available(site, names_of(["askubuntu/dev", "askubuntu"])).sets
    assert [wanted.split for wanted in sets.values()] == ["dev", "test"]
    assert rows_of(sets["askubuntu/dev"])["dev"]["document"].to_list() == [None, "12", "1", "31"]


def test_missing_useb_files_error_states_the_download_url(tmp_path):
    with pytest.raises(SourceError, match=r"Download https://public.*data-eval\.zip and unpack it into the mirror"):
        find_set(RunContext(mirror=str(tmp_path)), "scidocs")
    write_useb(tmp_path)
    (tmp_path / "data-eval" / "cqadupstack" / "corpus.json").unlink()
    with pytest.raises(
        SourceError, match=r"has only some of its files, no data-eval/cqadupstack/corpus.json\. Copy all"
    ):
        find_set(RunContext(mirror=str(tmp_path)), "cqadupstack")


@pytest.mark.parametrize(
    ("name", "file", "text", "words"),
    [
        (
            "askubuntu",
            "test.txt",
            "0\t1\t1 2\t0.5\n",
            r"test.txt, line 1: candidates and scores do not match",
        ),
        ("askubuntu", "test.txt", "0\t1\t1 99\t0.5 1\n", r"line 1: question '99' has no text"),
        (
            "askubuntu",
            "test.txt",
            "0\t1\t1\n",
            "line 1: 3 fields, expected 4. Unpack the file from USEB's data-eval.zip",
        ),
        ("askubuntu", "test.txt", "0\t1\t1\t1\n0\t2\t2\t1\n", "query 0: it appears twice"),
        ("askubuntu", "test.txt", "0\t\t1\t1\n", "no query has a relevant document"),
        ("cqadupstack", "corpus.json", '{"android": {}}', "split test: key '00' is missing"),
        ("cqadupstack", "retrieval_split.json", "{", "not JSON"),
        (
            "cqadupstack",
            "retrieval_split.json",
            '{"test": {"android": {"00": ["01", 1]}, "unix": {}}}',
            "a text or a name is not a string",
        ),
        (
            "scidocs",
            "data.json",
            '{"corpus": {"a": {"title": "b"}}, "test": {"cite": {"a": {"a": 2}}}}',
            r"judgements \{2\}",
        ),
        ("scidocs", "data.json", '{"corpus": {}}', "split test: key 'test' is missing"),
        *(
            ("twitterpara", "test.data", f"1\tTopic\tone\ttwo\t{odd}\n", f"line 1: '{odd}', expected the judges' votes")
            for odd in ("many", "9" * 30)
        ),
    ],
)
def test_invalid_useb_file_error_names_file_and_fault(tmp_path, name, file, text, words):
    (write_useb(tmp_path) / "data-eval" / name / file).write_text(text)
    with pytest.raises(SourceError, match=words):
        find_set(RunContext(mirror=str(tmp_path)), name)


def test_invalid_scidocs_corpus_source_names_file_and_missing_key(tmp_path):
    path = write_useb(tmp_path) / "data-eval" / "scidocs" / "data.json"
    path.write_text('{"corpus": {"a": {}}}')
    source = resolve_source(SourceSpec(dataset="scidocs", split="test"), str(tmp_path))
    with pytest.raises(SourceError, match=r"data\.json: key 'title' is missing\. Unpack the file from USEB's"):
        list(read_source(source, ReadReport("scidocs"), 0.0))


def test_twitterpara_is_readable_as_a_sentence_source(site):
    source = resolve_source(SourceSpec(dataset="twitterpara"), site.mirror)
    texts = pl.concat(read_source(source, ReadReport("twitterpara"), 0.0))["text"].to_list()
    assert texts[:2] == [GROUPS[0][0], GROUPS[0][1]]


def test_clusters_are_read_from_nested_lists_and_flat_columns(tmp_path):
    rows = [{"sentences": ["a", "b"], "labels": [0, 1]}, {"sentences": ["c"], "labels": [2]}]
    nested, flat = tmp_path / "nested.parquet", tmp_path / "flat.parquet"
    pl.DataFrame(rows).write_parquet(nested)
    expected = pl.DataFrame([("0", "a", "0"), ("0", "b", "1"), ("1", "c", "2")], schema=CLUSTERS, orient="row")
    expected.write_parquet(flat)
    assert read_clusters(str(nested)).equals(expected)
    assert read_clusters(str(flat)).equals(expected)
    pl.DataFrame(rows[:1]).with_columns(labels=pl.lit([], pl.List(pl.Int64))).write_parquet(nested)
    with pytest.raises(SourceError, match="set 1 has no list `sentences` with a list `labels` of the same length"):
        read_clusters(str(nested))
    flat.write_bytes(b"PAR1 this is not it")
    with pytest.raises(SourceError, match=r"flat\.parquet is not a complete Parquet file"):
        read_clusters(str(flat))
