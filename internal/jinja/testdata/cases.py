"""Writes cases.json: small templates with the output of Python's jinja2. Run: python cases.py > cases.json"""
import datetime
import json
import sys

from jinja2.exceptions import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
env.filters["tojson"] = tojson
env.globals["raise_exception"] = raise_exception
env.globals["strftime_now"] = datetime.datetime(2026, 11, 5, 9, 7, 3).strftime

variables = {
    "s": "  Hello, Wörld\n", "n": 3, "f": 2.5, "none_": None, "t": True, "list": [3, 1, 2], "words": ["b", "A", "c"],
    "d": {"b": 1, "a": [1, {"x": "y"}], "items_": None, "get": "hidden"}, "e": [], "q": "it's \"q\" \\ é\n",
    "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None, "tool_calls": [{"name": "f", "arguments": {"a": 1}}]}],
}

templates = r"""
{{ s }}|{{ n }}|{{ f }}|{{ none_ }}|{{ t }}|{{ list }}|{{ d }}|{{ q }}|{{ missing }}|
{{ [q, none_, 1.0, 1e20, 0.00001, 12345678901234567.0, -0.0, (1,), (), (1, 2)] }}
{{ 1 + 2 * 3 - 4 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7.5 // 2 }} {{ 2 ** 3 }} {{ 2 ** -1 }} {{ -2 ** 2 }} {{ 1 / 3 }}
{{ "a" ~ 1 ~ none_ ~ 2.0 }} {{ "ab" * 3 }} {{ [1] * 2 + [2] }} {{ "a" "b" }}
{{ 1 < 2 < 3 }} {{ 1 == 1.0 }} {{ "a" < "b" }} {{ true and "x" }} {{ "" or "y" }} {{ not n }} {{ 1 in list }} {{ 5 not in list }} {{ "el" in s }} {{ "b" in d }}
{{ "x" if n > 2 else "y" }} {{ "x" if n > 5 }}. {{ ("a" if t) | default("z") }}
{{ list[0] }} {{ list[-1] }} {{ list[1:] }} {{ list[::-1] }} {{ s[2:7] }} {{ s[-3:] }} {{ list[9] }}. {{ list[:-1] }} {{ "abcdef"[::2] }} {{ "abc"[5:1:-1] }} {{ list[-1:0:-1] }}
{{ d.b }} {{ d["a"][1].x }} {{ d.missing }}. {{ d.get("b") }} {{ d.get("zz", 5) }} {{ d["get"] }} {{ d.keys() | list }} {{ d.values() | list }} {{ d.items() | list }}
{% for x in list %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ loop.revindex0 }}{{ x }},{{ loop.previtem }};{{ loop.nextitem }} {% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %} {% for x in e %}x{% else %}empty{% endfor %} {% for x in list if x > 1 %}{{ x }}{{ loop.length }}{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}{{ x }}.
{% set a = 1 %}{% for i in range(3) %}{% set a = a + 1 %}{{ a }}{% endfor %}{{ a }} {% if true %}{% set a = 9 %}{% endif %}{{ a }}
{% set ns = namespace(x=1, found=false) %}{% for i in range(3) %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.found }}{{ ns.none }}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set c %}block {{ a }}{% endset %}[{{ c }}] {% set c | upper %}x{% endset %}{{ c }}
{% macro m(a, b=2, c=none) %}<{{ a }},{{ b }},{{ c }}>{% endmacro %}{{ m(1) }}{{ m(1, c=3) }}{{ m(b=1) }}{{ m("x", "y", "z") }}
{% macro outer() %}({{ caller(5) }}){% endmacro %}{% call(x) outer() %}got {{ x }}{% endcall %}
{% macro rec(n) %}{{ n }}{% if n > 0 %}{{ rec(n - 1) }}{% endif %}{% endmacro %}{{ rec(3) }}
{{ s | trim }}|{{ s | upper }}|{{ s | length }}|{{ "hello world-foo bar" | title }}|{{ "hELLO" | capitalize }}|{{ "xxaxx" | trim("x") }}
{{ list | first }} {{ list | last }} {{ e | first }}. {{ list | join(", ") }} {{ words | join }} {{ messages | map(attribute="role") | join("/") }}
{{ list | sort }} {{ words | sort }} {{ list | sort(reverse=true) }} {{ list | reverse | list }} {{ "abc" | reverse }} {{ [1,1,2] | unique | list }} {{ list | min }}{{ list | max }}{{ list | sum }}
{{ messages | selectattr("role", "equalto", "user") | list | length }} {{ messages | rejectattr("content") | list | length }} {{ list | select("odd") | list }} {{ list | reject("gt", 1) | list }} {{ words | map("upper") | list }}
{{ d | tojson }} {{ q | tojson }} {{ list | tojson(indent=2) }} {{ d | tojson(indent=4, sort_keys=true) }} {{ none_ | tojson }}{{ t | tojson }}{{ f | tojson }} {{ d | tojson(separators=(",", ":")) }} {{ "é😀" | tojson(ensure_ascii=true) }} {{ [] | tojson(indent=1) }}
{{ missing | default("x") }} {{ "" | default("x") }}. {{ "" | default("x", true) }} {{ none_ | default("x") }} {{ missing | default }}.
{{ "3.7" | int }} {{ "x" | int }} {{ "5" | int + 1 }} {{ "2.5" | float }} {{ -3 | abs }} {{ 2.567 | round(2) }} {{ 2.5 | round }} {{ 3.2 | round(0, "ceil") }} {{ n | string + "x" }} {{ 3.9 | int }}
{{ "a\nb\n\nc" | indent(2) }} {{ "a\nb" | indent(2, true) }} {{ "a-b-c" | replace("-", "+") }} {{ "a-b-c" | replace("-", "+", 1) }} {{ "<a&b>" | e }} {{ d | items | list }} {{ d | dictsort }} {{ "x" | safe }} {{ d | length }}
{{ s.strip() }}|{{ s.lstrip() }}|{{ s.rstrip() }}|{{ "xaxx".strip("x") }}|{{ "a,b,c".split(",") }}|{{ "a,b,c".split(",", 1) }}|{{ "a,b,c".rsplit(",", 1) }}|{{ " a  b c ".split() }}|{{ " a  b c ".split(none, 1) }}|{{ "a b c".rsplit(none, 1) }}
{{ s.upper() }}{{ s.lower() }}{{ "ab".startswith("a") }}{{ "ab".endswith(("x", "b")) }}{{ "a-b".replace("-", "") }}{{ "abcb".find("b") }}{{ "abcb".rfind("b") }}{{ "abc".find("z") }}{{ "abcb".count("b") }}{{ ",".join(words) }}{{ "12".isdigit() }}{{ "a\nb\n".splitlines() }}{{ "éb".find("b") }}{{ "ab".removeprefix("a") }}{{ "ab".removesuffix("b") }}
{{ "</think>x</think>y".split("</think>")[-1].lstrip("\n") }} {{ "<think>a".split("<think>")[-1] }}
{{ missing is defined }}{{ n is defined }}{{ none_ is none }}{{ s is string }}{{ n is number }}{{ d is mapping }}{{ list is iterable }}{{ list is sequence }}{{ d is sequence }}{{ n is iterable }}{{ t is boolean }}{{ t is true }}{{ n is odd }}{{ n is even }}{{ 6 is divisibleby 3 }}{{ n is not none }}{{ 1 is in list }}{{ t is number }}{{ t is integer }}{{ n is eq 3 }}{{ "a" is lower }}{{ missing is undefined }}{{ n is integer }}{{ f is float }}
a {%- if t %} b {% endif -%} c {{- n }} d {{ n -}} e {#- comment -#} f {%+ if t %} g {%- endif +%} h
  {% if t %}
    text
  {% else %}
  {% endif %}
end
{# a comment
#}
x{% raw %}{{ not }} {% this %}{% endraw %}y {%- raw -%}  z  {%- endraw -%} w
{{ "{{" }} {{ '%}' }} {{ {"a": {"b": 1}}["a"]["b"] }} {{ {} }} {{ {"k": none} }}
{{ "tab\t\x41\u00e9\U0001F600 \q \\ \' \"" }}
{{ strftime_now("%d %b %Y") }} {{ strftime_now("%Y-%m-%d %H:%M:%S %A %B %j %-d %y %I %p%%") }}
{{ raise_exception("stop") }}
{{ missing.attribute }}
{{ missing["x"] }}
{{ missing + 1 }}
{{ none_ + "x" }}
{{ 1 / 0 }}
{{ "a" < 1 }}
{% for x in n %}{% endfor %}
{{ list.append(1) }}
{{ range(5) | list }} {{ range(1, 7, 2) | list }} {{ range(3, 0, -1) | list }} {{ dict(a=1) }} {{ dict(d, z=1).z }}
{{ range(1000000) | list | length }}
{{ (1, 2)[0] }} {{ [1, [2, 3]][1][0] }} {{ "abc".1 }} {{ list.0 }}
{% filter upper %}abc {{ n }}{% endfilter %}
{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].arguments | tojson }}{% elif m['content'] %}{{ m['role'] + ': ' + m['content'] }}{% endif %}{% endfor %}
{{ messages[0]["role"] == "user" and messages[1].tool_calls is defined and messages[0].tool_calls is not defined }}
{% set x = messages[1:] if messages[0].role == "user" else messages %}{{ x | length }} {{ loop is defined }} {{ (n % 2 == 0) != (n % 2 == 1) }}
{{ -n | abs }} {{ (-n) | abs }} {{ not n == 3 }} {{ n == 3 and not t }} {{ "a" ~ "b" | upper }} {{ 1 + 2 ~ 3 }} {{ 2 * 3 ~ 4 }}
{% if n == 1 %}one{% elif n == 3 %}three{% else %}other{% endif %} {% if missing %}x{% endif %} {% if not missing %}y{% endif %}
{{ q | string | length }} {{ [1, "a", none_] | string }} {{ true | string }} {{ 1.0 | string }} {{ 10000000000000000.0 }} {{ 1e3 }} {{ 1_000 }}
{{ "%s and %s" | format("a", "b") }} {{ "%s" | format(d) }} {{ "%(x)s-%(y)03d" | format(x="é", y=7) }} {{ "%5s|%-5s|%05.1f|%+d|%x|%%|%r|%.2s" | format("a", "b", 2.345, 3, 255, "q", "xyz") }} {{ "%s" | format([1, none]) }}
{{ "%s is %d" % ("a", 3) }} {{ "%s" % n }} {{ "%(b)s" % d }} {{ "%g %g %e" % (0.00001, 1234567.0, 12.5) }} {{ "100%" }}
{{ "%s" | format }}
{{ "%s %s" | format(1) }}
{{ "%s" | format(1, 2) }}
{{ "%d" | format("x") }}
{{ "{}".format(n) }} {{ "{} {}".format("a", none_) }} {{ "<|image_{i:d}|>".format(i=n) }} {{ "{1}{0}".format("a", "b") }} {{ "{0.b} {0[a]} {x!r}".format(d, x="y") }} {{ "{{}}" ~ "{{{}}}".format(1) }}
{{ "[{:>5}|{:<5}|{:^5}|{:*^6}|{:05d}|{:+}|{:.2f}|{:,}|{:x}|{:.1%}|{:5}|{:.2}|{:e}|{:=+6}]".format("a", "b", "c", "d", 42, 3, 2.345, 1234567, 255, 0.256, true, "xyz", 1234.5, 7) }} {{ "{:s}{:5}|{:5}|{:_}|{:g}".format("x", 1.5, "y", 1234567.0, 0.1) }}
{{ "{}".format() }}
{{ "{:d}".format("x") }}
{{ "{:5}".format(none_) }}
{{ "{".format(1) }}
{% if missing %}{{ n | nosuchfilter("x") | trim }}{% elif false and n is nosuchtest %}{% else %}fine{% endif %} {{ "a" if t else n | nosuchfilter }}
{% if t %}{{ n | nosuchfilter }}{% endif %}
{% if t %}{{ n is nosuchtest }}{% endif %}
{% set x = none_ | selectattr("role", "equalto", "user") %}{% set y = n | map("upper") %}lazy {{ none_ | selectattr("x") | list }}{{ missing | map("nosuchfilter") | list }}{{ e | select("nosuchtest") | list }}
{{ n | map("upper") | list }}
{% if messages | selectattr("role", "equalto", "nobody") %}true without items{% endif %}{% if e | map("upper") %}also{% endif %}{% if e | unique %}also{% endif %}{% if {} | items %}also{% endif %}{% if e | reverse %}also{% endif %}
{{ messages | map(attribute="role") | length }}
{{ list | select | last }}
{{ d | items | length }}
{% set g = list | map("string") %}{{ g | first }},{{ g | join("+") }},{{ g | list }},{{ g is iterable }}{{ g is sequence }}{{ g[0] }}. {{ list | reverse | map("string") | join }} {{ list | map("string") | reverse | list }} {{ "3" in list | map("string") }}
{{ list | map("string") | tojson }}
{% for k, v in d | items %}{{ k }}{{ loop.last }}{% endfor %} {{ messages | selectattr("tool_calls", "defined") | map(attribute="role") | first }} {{ messages | map(attribute="zz", default="-") | join }}
{% include "x" %}
{{ n | nosuchfilter }}
{{ n is nosuchtest }}
{{ 1 +
{% if n
{{ "unclosed
{% endfor %}
{{ n n }}
{{ loop.index }}
{% for i in [1,2] %}{% for j in "ab" %}{{ i }}{{ j }}{{ loop.index0 }} {% endfor %}{{ loop.index }}{% endfor %}
{% for a, b in [(1, 2), (3, 4)] %}{{ a + b }}{% endfor %}{% for a, b in [1] %}{% endfor %}
{% set ns = namespace(last=-1) %}{% for m in messages[::-1] %}{% set index = (messages|length - 1) - loop.index0 %}{% if m.role == "user" and ns.last < 0 %}{% set ns.last = index %}{% endif %}{% endfor %}{{ ns.last }}
{% generation %}x{% endgeneration %}
{%- set sep = joiner(",") %}
{{ words | batch(2) | list }}
""".strip("\n")

sources = []
block = []
for line in templates.split("\n"):
    sources.append(line)
sources.append("  {% if t %}\n    text\n  {% else %}\n  {% endif %}\nend\n")
sources.append("{# a comment\n#}\nx\n\n")
sources.append("a\n  {%- for x in list %}\n  {{ x }}\n  {%- endfor %}\n\nb\n")
sources.append("a\n{% raw %}\n{{ x }}\n  {% endraw %}\nb {% raw -%}\n  c\n {%- endraw %}\n {%+ raw %} d\n {%+ endraw +%}\ne")
sources.append("  {% raw %}  {% endraw %}\n{%raw%}x{%endraw-%}\n  y{% raw -%}\n  {% endraw %}z")
sources.append("a\n \x0b{% if t %}b{% endif %}\n\u00a0{% if t %}c{% endif %}")
sources.append("a\r\n{% if t %}\r\nb\r\n{% endif %}\r\n")
sources.append("\n\n  {{ n }}  \n{% set x = 1 %}  \n {# c #} y {% if t %} z {% endif %} \n")

cases = []
for source in sources:
    try:
        cases.append({"template": source, "want": env.from_string(source).render(**variables)})
    except Exception as error:
        cases.append({"template": source, "error": type(error).__name__ + ": " + str(error)})
json.dump({"variables": variables, "cases": cases}, sys.stdout, ensure_ascii=False, indent=1)
print()
