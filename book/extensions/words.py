"""Formulas as words: for the search, for link previews, for whoever cannot see them typeset."""

from __future__ import annotations

import re

from docutils import nodes

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε",
    "zeta": "ζ", "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ",
    "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ",
    "varphi": "φ", "chi": "χ", "psi": "ψ", "omega": "ω", "Gamma": "Γ", "Delta": "Δ",
    "Theta": "Θ", "Lambda": "Λ", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω",
}  # fmt: skip
SIGNS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈",
    "times": "×", "cdot": "·", "pm": "±", "infty": "∞", "sum": "Σ", "prod": "∏", "in": "∈",
    "notin": "∉", "to": "→", "mapsto": "↦", "subset": "⊂", "subseteq": "⊆", "cup": "∪",
    "cap": "∩", "emptyset": "∅", "forall": "for all", "exists": "there is", "dots": "…",
    "ldots": "…", "cdots": "…", "langle": "⟨", "rangle": "⟩", "lceil": "⌈", "rceil": "⌉",
    "lfloor": "⌊", "rfloor": "⌋", "ll": "≪", "gg": "≫", "sim": "∼", "propto": "∝", "top": "ᵀ",
    "partial": "∂", "nabla": "∇", "wedge": "∧", "vee": "∨", "mid": "|", "quad": " ",
    "qquad": " ", "Longrightarrow": "⇒", "Rightarrow": "⇒", "iff": "⇔", "star": "*", "ast": "*",
    "|": "‖", "{": "❴", "}": "❵", ",": " ", ";": " ", ":": " ", "!": "", " ": " ", "\\": " ",
    "%": "%", "_": "_", "#": "#", "&": "&", "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|",
    "setminus": "∖", "ell": "ℓ", "circ": "∘", "prime": "′", "lesssim": "≲", "gtrsim": "≳",
}  # fmt: skip
#: Commands that change only the looks of what follows, or nothing that words can show.
LOOKS = re.compile(
    r"\\(?:mathbf|mathcal|mathbb|mathrm|mathsf|mathit|boldsymbol|operatorname\*?|text|textbf"
    r"|textit|emph|left|right|big[lrg]?|Big[lrg]?|bigg[lrg]?|Bigg[lrg]?|displaystyle|textstyle"
    r"|limits|widetilde|tilde|widehat|hat|bar|overline|underline|underbrace|overbrace|label"
    r"|begin|end|tag|nonumber)(?![a-zA-Z])\s*"
)
RAISED = str.maketrans("0123456789+-ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱ")
ARGUMENT = r"\s*(?:\{([^{}]*)\}|(\\[a-zA-Z]+|\w))"


def _joined(part: str) -> str:
    """A numerator or denominator, in brackets where it is more than one term."""
    part = part.strip()
    return part if re.fullmatch(r"[√\\]?\w+", part) else f"({part})"


def _raise(match: re.Match[str]) -> str:
    inner = match[1] if match[1] is not None else match[2]
    simple = re.fullmatch(r"[0-9+\-ni]+", inner)
    return inner.translate(RAISED) if simple else f"↑{_joined(inner)}"


def plain_formula(tex: str) -> str:
    """TeX as one line that can be read and searched: ``\\zeta\\sqrt d/\\Delta`` is ζ√d/Δ."""
    text = re.sub(r"\\(?:begin|end)\{\w+\*?\}|\\label\{[^{}]*\}", " ", tex)
    text = LOOKS.sub("", text)
    for _ in range(6):
        before = text
        text = re.sub(
            rf"\\[td]?frac{ARGUMENT}{ARGUMENT}",
            lambda m: f"{_joined(m[1] or m[2])}/{_joined(m[3] or m[4])}",
            text,
        )
        text = re.sub(rf"\\sqrt{ARGUMENT}", lambda m: f"√{_joined(m[1] or m[2])}", text)
        text = re.sub(r"\^(?:\{([^{}]*)\}|(\\[a-zA-Z]+|\S))", _raise, text)
        text = re.sub(r"_\{([^{}]*)\}", lambda m: f"_{m[1]}", text)
        if text == before:
            break
    text = re.sub(r"\\([a-zA-Z]+|.)", lambda m: GREEK.get(m[1]) or SIGNS.get(m[1], m[1]), text)
    text = text.translate(str.maketrans("❴❵↑&~", "{}^  ", "{}"))
    return re.sub(r"\s+", " ", text).strip()


def words(node: nodes.Node) -> str:
    """The text of a node, its formulas as words; code, scripts and pictures are left out."""
    if isinstance(node, nodes.math | nodes.math_block):
        return (
            f" {plain_formula(node.astext())} "
            if isinstance(node, nodes.math_block)
            else (plain_formula(node.astext()))
        )
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, nodes.raw | nodes.comment | nodes.substitution_definition):
        return ""
    parts = [words(child) for child in node.children]
    block = isinstance(node, nodes.Body | nodes.Structural | nodes.title | nodes.row | nodes.entry)
    return (" ".join if block else "".join)(parts)
