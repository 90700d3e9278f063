"""Names with quotes, line breaks and statements in them are names, in this process and in SQL."""

import pytest

import panes as pn
from panes.errors import ExpressionError
from tests.nasty_names import NAMES, SUBSTITUTED, query, table

ALL = (*NAMES, SUBSTITUTED)


def test_run():
    answers = pn.plan(query(ALL)).run(table(ALL))
    assert set(answers["window_name"].to_pylist()) == {f"w {name}" for name in ALL}
    assert answers["s line\nbreak"].to_pylist() == [d - 1 for d in answers["d line\nbreak"].to_pylist()]
    assert set(answers[f"k {SUBSTITUTED}"].to_pylist()) == {f"{SUBSTITUTED}0", f"{SUBSTITUTED}1"}


def test_lookup_and_live_agree():
    events = table(ALL)
    plan = pn.plan(query(ALL, pn.sliding("3 min", name="w '`\""), lookup=True))
    requests = events.select([0, *range(1, len(ALL) + 1)])
    found = plan.lookup(events, requests)
    assert "s line\nbreak_w '`\"" in found.column_names
    live = plan.live(keep="1 hour")
    live.update(events)
    assert live.lookup(requests).equals(found)
    live.add_index("n")
    key = "k back`tick"
    assert live.find("n > 0 AND `k back``tick` = 'back`tick1'", over="3 min")[key].to_pylist() == ["back`tick1"]


def test_join():
    events = table(ALL)
    keys = [f"k {name}" for name in ALL]
    renamed = events.rename_columns([name.replace("v ", "u ", 1) for name in events.column_names])
    found = pn.join(events, renamed, on=keys, at=f"at {ALL[0]}", over="2 min", where="`v back``tick` = `u back``tick`")
    assert found.num_rows == events.num_rows


def test_sql_and_back():
    declared = query(ALL)
    again = pn.sql(pn.to_sql(declared))
    assert again == [declared]
    assert pn.plan(again).run(table(ALL)).equals(pn.plan(declared).run(table(ALL)))


def test_saved_and_loaded(tmp_path):
    plan = pn.plan(query(ALL, pn.sliding("3 min"), lookup=True))
    live = plan.live(keep="1 hour")
    live.update(table(ALL))
    live.save(tmp_path / "a'; rm")
    again = plan.live(load=tmp_path / "a'; rm")
    requests = table(ALL).slice(20).select([0, *range(1, len(ALL) + 1)])
    assert again.lookup(requests).equals(live.lookup(requests))


def test_pictures_are_text():
    plan = pn.plan(
        pn.query("<script>x</script>", by="<b>&", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 h"))
    )
    assert "<script" not in plan.to_svg()
    assert "<b>&" not in plan.to_svg()


@pytest.mark.parametrize(
    "where",
    [
        "reflect('java.lang.System', 'getenv', 'PATH') = 'x'",
        "java_method('java.lang.System', 'exit', 1) = 'x'",
        "try_reflect('java.lang.System', 'exit', 1) = 'x'",
        "__import__('os').x = 1",
        "session_user() = 'x'",
        "(SELECT 1) = 1",
        "x = 1; DROP TABLE t",
        "x = 1 UNION SELECT 1",
    ],
)
def test_expressions_call_only_what_is_listed(where):
    with pytest.raises(ExpressionError, match=r"cannot use|is not"):
        pn.query("q", at="ts", select={"n": pn.count()}, over=pn.tumbling("1 h"), where=where)
