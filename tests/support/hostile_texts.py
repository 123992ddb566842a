"""Texts that mean something to a browser, a script or a parser, and may be a name or a value of data."""

from __future__ import annotations

HIT = "window.hit=1"
"""What hostile code of these texts would do in a page."""

PAGE_TEXTS: tuple[str, ...] = (
    f"<script>{HIT}</script>",
    f"</script><script>{HIT}</script>",
    f"<img src=x onerror={HIT}>",
    f'"><svg onload={HIT}>',
    f"'><svg/onload={HIT}>",
    f'" onload="{HIT}" x="',
    f"' onmouseover='{HIT}' x='",
    f"x onfocus={HIT} autofocus tabindex=1",
    f"</title><script>{HIT}</script>",
    f"</style><script>{HIT}</script>",
    f"</text></svg><script>{HIT}</script>",
    f"<svg><title><script>{HIT}</script>",
    f"<!--<script>{HIT}</script>-->",
    "<!--",
    "--><b>x</b>",
    "]]><b>x</b>",
    f"<![CDATA[<script>{HIT}</script>]]>",
    f"<?xml version='1.0'?><script>{HIT}</script>",
    f"javascript:{HIT}",
    f"data:text/html,<script>{HIT}</script>",
    f"<a href='javascript:{HIT}'>x</a>",
    f"<iframe srcdoc='<script>{HIT}</script>'>",
    "<meta http-equiv=refresh content='0;url=http://127.0.0.1:9/'>",
    "<link rel=stylesheet href=http://127.0.0.1:9/x.css>",
    "<base href=http://127.0.0.1:9/>",
    "<style>*{display:none}</style>",
    "<plaintext>",
    "<template><b>x</b>",
    f"<math><mtext><style><img src onerror={HIT}>",
    "{{7*7}}${7*7}`${" + HIT + "}`",
    "&lt;b&gt;&#60;b&#62;&amp;&nbsp",
    "a\u202eb\u2066c\u200fd",
    "a\x00b\x07c\x1b[31md\x7fe\x9bf",
    "half \ud800 and \udfff",
    "line\u2028end\u2029of\nall\r\tkinds",
    "both \" and ' and ` and \\",
    "x" * 5000 + "<b>",
    "\u05e9\u05dc\u05d5\u05dd <b>\u0645\u0631\u062d\u0628\u0627</b>",
    "__proto__",
    "constructor",
    "\ufeff\ufffe\U0010ffff<b>",
    "+ADw-script+AD4-\x0e\x0f",
)
"""Forty and more texts; none may be more than text in a page."""
