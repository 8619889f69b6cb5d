"""Single dollars are formulas by pandoc's rule, money and code are not."""

from __future__ import annotations

import pytest

from ui.mathtext import marked


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("so $x$ is", r"so \(x\) is"),
        ("$a_1 + \\frac{1}{2}$, $y$.", r"\(a_1 + \frac{1}{2}\), \(y\)."),
        ("let $f(x)=x^2$; ($n$) 设$x$", r"let \(f(x)=x^2\); (\(n\)) 设\(x\)"),
        ("设 $x$，则 $y$", r"设 \(x\)，则 \(y\)"),
        (r"$\$5$", r"\(\$5\)"),
    ],
)
def test_formulas(text: str, expected: str) -> None:
    assert marked(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "costs $5 and then $6",
        "it is $ 5 $",
        "$20,000 and USD$30,000",
        "one $ alone",
        "$x\ny$",
        "`$x$` and ``a ` $y$``",
        "```sh\necho $HOME $PATH$\n```",
        "```sh\necho $a$",
        "~~~\n$a$\n~~~",
        "$$\na + b\n$$",
        "$$a$$",
        r"\(a $b$\) \[c $d$\]",
        r"\$x\$",
        "no dollars",
        "",
    ],
)
def test_what_is_no_formula_stays(text: str) -> None:
    assert marked(text) == text


def test_a_long_answer_takes_no_time() -> None:
    for piece in ("$x ", "`", "`a ", "\\(", "\\[ ", "$$ ", "$a\\", "```\n"):
        assert marked(piece * 20_000 + "$x$")


def test_backticks_close_only_as_many_and_what_stays_open_is_text() -> None:
    assert marked("`` ` `$x$` `` $y$ `") == "`` ` `$x$` `` \\(y\\) `"
    assert marked("\\[ $x$") == "\\[ \\(x\\)"


def test_marks_that_nothing_closes_are_few_for_the_browser() -> None:
    text = marked("\\[" * 3_000 + "\\(" * 3_000)
    assert text.startswith("\\[" * 20 + "&#91;") and text.endswith("&#40;") and text.count("\\") == 20
