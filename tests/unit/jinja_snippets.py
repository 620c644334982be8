# SPDX-License-Identifier: Apache-2.0
"""Snippets of Jinja that jinja_oracle.py renders on both sides, each in a sandbox that forbids changing lists and dicts and in one
that allows it. A snippet tests one thing; what both refuse is as good as what both print."""

CONTEXT = {
    "s": "Hello, Wörld",
    "t": "  padded\n",
    "empty": "",
    "html": "<a href=\"x\">&'</a>",
    "n": 7,
    "neg": -7,
    "f": 2.5,
    "big": 123456789012345678,
    "yes": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2],
    "strs": ["b", "A", "c", "a"],
    "mixed": [1, "a", None, 2.0, True, [1], {"k": "v"}],
    "d": {"b": 1, "a": 2, "C": [1, 2], "items": "shadowed", "x y": {"deep": {"er": 5}}},
    "people": [{"name": "Zoe", "age": 30, "tag": "x"}, {"name": "adam", "age": 25}, {"name": "Bo", "age": 30, "tag": "y"}],
    "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": None}],
    "uni": "Straße ΑΣ ǆ İ ﬁ 👩‍👩‍👧 é",
    "lines": "one\ntwo\r\nthree\n\n  four\u2028five\x0bsix\n",
    "tree": [{"v": 1, "kids": [{"v": 2, "kids": []}, {"v": 3, "kids": [{"v": 4, "kids": []}]}]}],
    "json": "{\"a\": [1, 2.50, null, true, \"x\"]}",
}

PRINTING = """{{ s }}|{{ n }}|{{ f }}|{{ yes }}|{{ nil }}|{{ missing }}|{{ l }}|{{ d }}|{{ mixed }}
{{ [] }}{{ {} }}{{ () }}{{ (1,) }}{{ (1, 2) }}{{ 1, 2 }}{{ 'a', }}
{{ [html, 'it\\'s', "both ' and \\"", '\\n\\t\\\\'] }}
{{ [uni, '\u00a0', '\u200b', '\\x7f', '\\x00'] }}
{{ 1.0 }} {{ 0.1 + 0.2 }} {{ 1e16 }} {{ 1e15 }} {{ 1.5e-5 }} {{ 0.0001 }} {{ 123456.789e3 }} {{ -0.0 }} {{ 1e100 }} {{ 5e-324 }} {{ 1.7976931348623157e308 }}
{{ 1e400 }} {{ -1e400 }} {{ 1e400 - 1e400 }}
{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_0.5_0 }} {{ 00 }}
{{ 012 }}
{{ 'a' 'b' "c" }} {{ 'a\\x41\\u00e9\\U0001F600\\101\\d' }} {{ 'line\\
joined' }}
{{ '\\xZZ' }}
{{ d.keys() }} {{ d.values() }} {{ d.items() }}
{{ range(3) }} {{ range(1, 10, 3) }} {{ range(3)|list }}
{{ namespace(a=1, b='x') }}
{{ true }} {{ True }} {{ none }} {{ None }} {{ false }}
{{ s|safe }} {{ [s|safe] }}
{{ missing.x }}
{{ missing['x'] }}
{{ nil.x }}
{{ nil.x.y }}
{{ n.x }}{{ l.x }}{{ d.zzz }}{{ l[10] }}{{ s[100] }}
{{ d.zzz.y }}
{{ l[10].x }}
{{ [missing] }}
{{ missing() }}
{{ n() }}
{{ s.nothing() }}""".split("\n{{ '\\xZZ")[0]

OPERATORS = r"""
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 6 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }}
{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 1e308 * 10 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 / 0 }}
{{ 0 ** -1 }}
{{ -2 ** 2 }} {{ - 3 }} {{ +3 }} {{ - -3 }} {{ -yes }} {{ +yes }} {{ -f }}
{{ 2 ** 3 ** 2 }} {{ 2 * 3 + 4 * 5 }} {{ 2 + 3 ~ 4 }} {{ 1 ~ 2 * 3 }} {{ 10 - 2 - 3 }} {{ 100 // 7 // 2 }}
{{ yes + yes }} {{ yes * 3 }} {{ true + 1.5 }} {{ no - 1 }}
{{ 'a' + 'b' }} {{ 'a' * 3 }} {{ 3 * 'a' }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ [1] * 2 }} {{ (1,) + (2,) }} {{ (1, 2) * 2 }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ 'a' - 'b' }}
{{ nil + 1 }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ missing ~ 1 ~ nil }}
{{ -missing }}
{{ -s }}
{{ not missing }} {{ not [] }} {{ not 'a' }} {{ not 0.0 }} {{ not nil }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ (1, 2) == [1, 2] }} {{ missing == missing }} {{ missing == nil }} {{ nil == none }} {{ range(3) == range(3) }}
{{ 1 != 2 }} {{ 'a' != 1 }} {{ missing != missing2 }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 >= 2 != 1 }} {{ 1 < 2.5 }} {{ 'a' < 'b' }} {{ 'Z' < 'a' }} {{ 'é' > 'z' }} {{ [1, 2] < [1, 3] }} {{ (1,) < (1, 0) }} {{ [] < [0] }} {{ true < 2 }}
{{ 9007199254740993 == 9007199254740992.0 }} {{ 9007199254740993 > 9007199254740992.0 }} {{ 1e300 > 5 }}
{{ 'a' < 1 }}
{{ nil < 1 }}
{{ missing < 1 }}
{{ {} < {} }}
{{ [nil] < [nil] }} {{ [nil, 1] < [nil, 2] }}
{{ [nil] < [1] }}
{{ 'a' in 'abc' }} {{ '' in 'abc' }} {{ 'x' not in 'abc' }} {{ 1 in l }} {{ 1.0 in l }} {{ true in l }} {{ 'b' in d }} {{ 'zz' in d }} {{ 2 in (1, 2) }} {{ 1 in range(3) }} {{ 'a' in missing }} {{ missing in [missing2] }} {{ 1 in d.values() }} {{ 'b' in d.keys() }} {{ ('b', 1) in d.items() }}
{{ 1 in 'abc' }}
{{ missing in 'abc' }}
{{ 1 in nil }}
{{ 1 in 5 }}
{{ [] in d }}
{{ [] in l }}
{{ not 1 in l }} {{ not 5 in l }}
{{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or missing or 'y' }} {{ 1 or missing.boom }} {{ nil and missing.boom }} {{ not 1 or 2 }} {{ 1 and not 0 }}
{{ 'a' if yes else 'b' }} {{ 'a' if no else 'b' }} {{ 'a' if no }} {{ ('a' if no) is defined }} {{ 1 if yes else 2 if no else 3 }} {{ 'x' if no else 'y' if no else 'z' }}
{{ ('a' if no).x }}
{{ 1 if yes if no }}
{{ '%s is %d years and %.2f' % ('Bo', 30, 1.005) }} {{ '%5d|%-5d|%05d|%+d|% d' % (42, 42, 42, 42, 42) }} {{ '%x %X %o %e %g %%' % (255, 255, 8, 12345.678, 0.00001) }} {{ '%r %s' % ('a', 'a') }} {{ '%(a)s-%(b)d' % {'a': 'x', 'b': 2} }} {{ '%5s|%-5s|%.2s' % ('ab', 'ab', 'abc') }} {{ '%c%c' % ('x', 65) }} {{ '%s' % nil }} {{ '%s' % [1, 'a'] }} {{ '%d' % 3.9 }} {{ '%*d' % (5, 42) }} {{ '%s' % 'é' }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ 'plain' % 1 }}
{{ 'plain' % {} }} {{ 'plain' % [] }} {{ 'plain' % () }}
{{ '%s' % missing }}
{{ '%d' % missing }}
{{ '%q' % 1 }}
{{ '%' % 1 }}
{{ '%(a)s' % {} }}
{{ '%s' % () }}
{{ (1 + 2) * 3 }} {{ 1 + 2 == 3 and 2 * 2 == 4 }} {{ 'a' ~ 'b' == 'ab' }} {{ 1 + 1 ~ 'x' }} {{ not 1 == 2 }}
{{ 1 if 0 else 2 + 3 }} {{ (1 if 0 else 2) + 3 }}
{{ n is number and s is string }} {{ n is not none }} {{ not n is none }} {{ -1|abs }} {{ (-1)|abs }} {{ 5 - 3|abs }} {{ 2 * l|length }} {{ l|length * 2 }} {{ 'a' ~ l|join }} {{ 'a' + 'b'|upper }} {{ 2 ** 3|float }}
"""

LOOKUP = r"""
{{ d.a }} {{ d['a'] }} {{ d['items'] }} {{ d.get('a') }} {{ d.get('zz') }} {{ d.get('zz', 5) }} {{ d['x y'].deep.er }} {{ d['x y']['deep']['er'] }} {{ d.C.0 }} {{ d.C[-1] }}
{{ d.items is defined }} {{ d.zz is defined }} {{ d.get is defined }} {{ d.update is defined }} {{ d.pop is defined }} {{ l.append is defined }} {{ l.pop is defined }} {{ s.upper is defined }} {{ s.encode is defined }} {{ s.foo is defined }} {{ s.__class__ is defined }}
{{ s[0] }}{{ s[-1] }}{{ s[8] }} {{ s[1:4] }} {{ s[:3] }} {{ s[-3:] }} {{ s[::2] }} {{ s[::-1] }} {{ s[5:1:-1] }} {{ s[10:2] }} {{ s[-100:100] }} {{ s[3:3] }} {{ s[8:2:-2] }}
{{ uni[6] }}{{ uni[::-1] }}{{ uni[10:14] }}{{ uni|length }}
{{ l[1:] }} {{ l[:-1] }} {{ l[::-1] }} {{ l[-2:] }} {{ l[5:] }} {{ (1, 2, 3)[1:] }} {{ range(10)[2:5]|list }} {{ range(10)[-1] }} {{ range(10)[::3]|list }} {{ l[true] }} {{ l[none:2] }}
{{ l[::0] }}
{{ s['a':] }}
{{ nil[1:] }}
{{ missing[1:] }}
{{ d[1:] }}
{{ n[0] }}{{ nil[0] }}{{ l['x'] }}{{ l[1.0] }}{{ d[[]] }}
{{ l['append'] is defined }} {{ d['get']('a') }} {{ d['keys'] is defined }}
{{ {'a': 1}.a }} {{ {1: 'x', 1.0: 'y', true: 'z'} }} {{ {'a': 1, 'a': 2} }} {{ {none: 1}[none] }} {{ {(1, 2): 3}[(1, 2)] }} {{ {(1, 2): 3}[1, 2] }}
{{ {[]: 1} }}
{{ {missing: 1} }}
{{ [1, 2, 3,][0] }} {{ [[1, 2], [3]][0][1] }} {{ {'a': {'b': [1, {'c': 2}]}}.a.b[1].c }}
{{ messages[0].role }} {{ messages[-1]['content'] }} {{ messages[1:][0]['content'] }} {{ (messages|last).role }} {{ messages|map(attribute='role')|join(',') }}
{{ l.0 }} {{ l.1 }} {{ strs.3 }} {{ l.9 }}
{{ l|attr('append') is defined }} {{ d|attr('a') is defined }} {{ d|attr('get') is defined }}
{{ s.upper() }} {{ s.upper().lower() }} {{ s.split(',')[1].strip() }} {{ 'abc'.upper()[0] }} {{ ('a' ~ 'b').upper() }} {{ "x".join(['1', '2']) }} {{ 5.5.x is defined }}
{{ l.append(4) }}{{ l }}
{{ l.pop() }}{{ l }} {{ l.pop(0) }}{{ l }}
{{ l.pop(10) }}
{{ [].pop() }}
{{ l.clear() }}{{ l }}
{{ l.extend([1, 2]) }}{{ l }}
{{ l.insert(1, 'x') }}{{ l }}
{{ l.remove(1) }}{{ l }}
{{ l.reverse() }}{{ l }}
{{ d.pop('a') }}{{ d }}
{{ d.pop('zz', 0) }}
{{ d.pop('zz') }}
{{ d.update({'q': 1}) }}{{ d.q }}
{{ d.setdefault('q', 5) }}{{ d.q }}
{{ d.copy() }} {{ l.copy() }} {{ l.index(1) }} {{ l.count(1) }} {{ (1, 1).count(1) }}
{{ l.index(99) }}
{{ d.get() }}
{{ d.get('a', 1, 2) }}
{{ d.get(key='a') }}
{{ d.get([]) }}
{% set ns = namespace(ids=[]) %}{% set _ = ns.ids.append(1) %}{{ ns.ids }}
{% set x = {'a': 1} %}{% set _ = x.update({'b': 2}) %}{{ x }}
"""

STATEMENTS = r"""
{% if yes %}a{% endif %}{% if no %}b{% else %}c{% endif %}{% if no %}d{% elif yes %}e{% else %}f{% endif %}{% if missing %}g{% endif %}{% if l|length > 2 and n == 7 %}h{% endif %}
{% for x in l %}{{ x }},{% endfor %}{% for x in [] %}a{% else %}none{% endfor %}{% for x in l %}{{ x }}{% else %}none{% endfor %}
{% for x in s %}{{ x }}.{% endfor %}{% for x in d %}{{ x }} {% endfor %}{% for x in missing %}{{ x }}{% endfor %}
{% for x in n %}{% endfor %}
{% for x in nil %}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k, v in d|items %}{{ k }}={{ v }};{% endfor %}{% for k, v in d|dictsort %}{{ k }};{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [[1]] %}{% endfor %}
{% for a, b in [[1, 2, 3]] %}{% endfor %}
{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }}{{ loop.previtem }}{{ loop.nextitem }}|{% endfor %}
{% for x in l %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in l %}{{ loop.cycle() }}{% endfor %}
{% for x in l %}{{ loop.nothing is defined }}{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }}{{ loop.length }} {% endfor %}{% for x in l if x > 5 %}{% else %}nothing{% endfor %}{% for a, b in d.items() if b is number %}{{ a }}{% endfor %}
{% for x in l|map('string') %}{{ loop.length }}{{ loop.revindex }}{{ x }}{{ loop.last }} {% endfor %}
{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }} {% endfor %}
{% for x in l %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}
{% for x in [1, 2, 3, 4] %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in l %}{% break %}{% else %}e{% endfor %}|{% for x in l %}{% continue %}{% else %}e{% endfor %}|{% for x in l %}{{ x }}{% if x == 1 %}{% break %}{% endif %}{% else %}e{% endfor %}
{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %}{{ x }} {% endfor %}
{% for x in l %}a{% set q %}b{% if x == 1 %}{% break %}{% endif %}{% endset %}{{ q }}{% endfor %}
{% break %}
{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% for x in l %}{% else %}{% break %}{% endfor %}
{% for node in tree recursive %}{{ node.v }}{{ loop.depth }}({{ loop(node.kids) }}){% endfor %}
{% for x in l %}{{ loop([]) }}{% endfor %}
{% for node in tree recursive %}{{ node.v }}{% if node.kids %}[{{ loop(node.kids) }}]{% endif %}{% else %}empty{% endfor %}
{% for loop in l %}{% endfor %}
{% for x in l %}{% set loop = 1 %}{% endfor %}
{% set x = 1 %}{% for y in l %}{% set x = x + y %}{{ x }} {% endfor %}{{ x }}
{% set ns = namespace(n=0) %}{% for y in l %}{% set ns.n = ns.n + y %}{% endfor %}{{ ns.n }} {{ ns['n'] }} {{ ns.zz is defined }}
{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{% set ns.c = 3 %}{{ ns.c }}
{% set d.q = 1 %}
{% set missing.q = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}{{ ns._x }}|{{ ns._x is defined }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}{% set (c, d2), e = [3, 4], 5 %}{{ c }}{{ d2 }}{{ e }}
{% set a, b = 1 %}
{% set a, b = [1] %}
{% set a, b = missing %}
{% set a = 1, 2 %}{{ a }}{% set a = 1, %}{{ a }}{% set a = () %}{{ a }}
{% set 1 = 2 %}
{% set none = 2 %}
{% set a.b.c = 2 %}
{% set x %}block {{ n }}{% endset %}{{ x }}|{{ x|length }}{% set x | upper | replace('B', 'C') %}ab{% endset %}{{ x }}{% set x|indent(2) %}a
b{% endset %}{{ x }}
{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}
{% if yes %}{% set x = 1 %}{% endif %}{{ x }}{% if no %}{% set y = 1 %}{% endif %}{{ y is defined }}{% if no %}{% set s = 1 %}{% endif %}{{ s }}
{{ s }}{% set s = 'new' %}{{ s }}
{% for x in [1] %}{{ s }}{% endfor %}{% set s = 'new' %}{{ s }}
{% for x in [1] %}{{ s }}{% endfor %}{% if yes %}{% set s = 'new' %}{% endif %}{{ s }}
{% macro m() %}{{ s }}{% endmacro %}{{ m() }}{% set s = 'new' %}{{ m() }}
{% macro m() %}[{{ s }}]{% endmacro %}{{ s }}{{ m() }}{% set s = 'new' %}{{ m() }}
{% for x in [1, 2] %}{{ s }}{% set s = x %}{{ s }}{% endfor %}{{ s }}
{% for x in [1, 2] %}{% if x == 1 %}{% set q = 'set' %}{% endif %}{{ q }};{% endfor %}
{% set q = 'out' %}{% for x in [1, 2] %}{% if x == 1 %}{% set q = 'in' %}{% endif %}{{ q }};{% endfor %}{{ q }}
{% for x in [1] %}{% for y in [1] %}{{ s }}{% endfor %}{% set s = 1 %}{% endfor %}{{ s }}
{% if no %}{% set s = 1 %}{% else %}{% set s = 2 %}{% endif %}{{ s }}{% if no %}{% set t = 1 %}{% elif no %}{% set t = 2 %}{% else %}{% set u = 2 %}{% endif %}{{ t }}{{ u }}
{% macro m(a, b=2, c='x' ~ n) %}{{ a }}-{{ b }}-{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 3) }} {{ m(a=5, c='z') }} {{ m() }} {{ m(1, c=2, b=3) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a }}{% endmacro %}{{ m(1, a=2) }}
{% macro m(a=1, b) %}{% endmacro %}
{% macro m(a, a) %}{{ a }}{% endmacro %}{{ m(1, 2) }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}
{% macro m(a=b, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m() }}
{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}
{% macro m() %}{{ caller() }}{% endmacro %}{% call m() %}inner {{ n }}{% endcall %}
{% macro m() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=5) m() %}{{ a }}{{ b }}{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}
{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}
{% macro f(k) %}{% if k > 0 %}{{ k }},{{ f(k - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro render(v, ind='') %}{% if v is mapping %}{% for k, w in v|dictsort %}{{ ind }}{{ k }}:
{{ render(w, ind ~ '  ') }}{% endfor %}{% elif v is iterable and v is not string %}{% for w in v %}{{ ind }}-{{ render(w, '') }}{% endfor %}{% else %}{{ ind }}{{ v }}
{% endif %}{% endmacro %}{{ render(d) }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{{ a() }}{% macro a() %}A{% endmacro %}
{% if yes %}{% macro m() %}M{% endmacro %}{% endif %}{{ m() }}
{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{% macro m() %}{% set s = 'inner' %}{{ s }}{% endmacro %}{{ m() }}{{ s }}
{% macro m() %}{% for x in l %}{{ x }}{% endfor %}{% endmacro %}{{ m() }}{{ m()|length }}{{ m()|upper }}{{ m is callable }}
{% macro m(x) %}{{ x.y }}{% endmacro %}{{ m({'y': 1}) }}{{ m(*[{'y': 2}]) }}{{ m(**{'x': {'y': 3}}) }}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace('a', 'b')|trim %} aa {% endfilter %}
{% with %}{% set w = 1 %}{{ w }}{% endwith %}{{ w is defined }}{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{% with a = 1, b = a %}{{ b }}{% endwith %}
{% generation %}g {{ n }}{% set gg = 1 %}{% endgeneration %}{{ gg is defined }}
{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}
{% print n, s %}{% print 'x' %}
{% raw %}{{ n }}{% if %}{% endraw %}|{%- raw -%}  x  {%- endraw -%}  y
{# comment #}a{#- b -#} c {# {{ n }} {% if %} #}
{% set x = joiner('|') %}{{ x() }}a{{ x() }}b{{ x() }}{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}
{{ dict(a=1, b=2) }} {{ dict({'a': 1}, b=2) }} {{ dict([['a', 1]]) }}
{{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(-3)|length }} {{ range(100000)|length }}
{{ range(100001) }}
{{ range(10)[2:8:3] }} {{ range(10, 0, -2)[1:] }} {{ range(5)[::-1] }} {{ range(5)[9:] }} {{ range(5, 0) }}
{{ dict(missing) }}
{{ 1 / big }} {{ big / 3 }} {{ big / -7 }}
{{ {(1, 2): 3}[l, 2] is defined }} {{ ('<'|safe|list)[0] + '<' }} {{ lines.splitlines(0)|length }}
{{ lines.splitlines(missing) }}
{{ range() }}
{{ range('a') }}
{{ range(1, 2, 0) }}
{{ strftime_now('%Y-%m-%d %H:%M:%S %B %d %b %A %j %f %%') }}|{{ strftime_now('') }}|{{ strftime_now('%z%Z') }}
{{ raise_exception('no: ' ~ n) }}
{% if no %}{{ raise_exception('no') }}{% endif %}fine
{% if no %}{{ 1|nofilter }}{% endif %}fine
{% if yes %}{{ 1|nofilter }}{% endif %}
{{ 1|nofilter if no else 2 }}
{% for x in [] %}{{ 1|nofilter }}{% endfor %}
{% if no %}{% for x in [] %}{{ 1|nofilter }}{% endfor %}{% endif %}
{% if no %}{{ 1 is notest }}{% endif %}fine
{{ lipsum is defined }}{{ cycler is defined }}
{% for x in l %}{{ x }}{% endfor %}{{ x is defined }}{{ loop is defined }}
{% for x in range(3) %}{% if loop.first %}{% set z = 'first' %}{% endif %}{{ z }}{% endfor %}
{% set z = [] %}{% for x in l %}{% set z = z + [x] %}{% endfor %}{{ z }}
{{ [1, 2, 3]|sum }}{% set m = messages %}{% for x in m %}{% if not loop.last and x.role != m[loop.index0 + 1].role %}{{ loop.index0 }}{% endif %}{% endfor %}
{%- for m in messages -%}{{ m.role }}: {{ m.content or '-' }}{%- if not loop.last %}, {% endif -%}{%- endfor -%}
"""

WHITESPACE = [
    "a\n{% if yes %}\nb\n{% endif %}\nc\n",
    "a\n  {% if yes %}  \nb\n  {% endif %}\nc",
    "  {% if yes %}x{% endif %}  \n  y",
    "a {% if yes %} b {% endif %} c",
    "a\n\t {%- if yes -%} \n b \n {%- endif -%} \n c",
    "a\n  {%+ if yes %}b{%+ endif %}\n",
    "a\n{% if yes +%}\nb{% endif +%}\nc",
    "{{- ' a ' -}}  \n b {{ 'c' -}} \n d\n\n",
    "x\n  {{ 'y' }}\n  {{- 'z' }}",
    "{# c #}\nx\n  {# c #}\n  y {#- c -#}  z\n {#+ c +#}\nw",
    "\n\n{% set x = 1 %}\n\n{{ x }}\n\n",
    "a\r\nb\r{% if yes %}\r\nc{% endif %}\r\n",
    "{% if yes -%}\n\n  x\n{%- endif %}\n\ny",
    "{%- if yes %}{{ 'a' }}{%- endif %} {%- if yes %} b{% endif %}",
    "a\u00a0\u2003{%- if yes -%}\u2003\u00a0b{% endif %}",
    "   {% for x in l %}\n   {{ x }}\n   {% endfor %}\n   end",
    "\t{% if yes %}\n\t\tx\n\t{% endif %}\n",
    "{%if yes%}a{%endif%}{{n}}{{-n-}}{%-if yes-%}b{%-endif-%}",
    "{{ {'a': {'b': 1}} }}{{ {'a': {'b': 1}}.a }}",
    "{{ '}}' }}{{ \"%}\" }}{% set x = '%}' %}{{ x }}",
    "{% raw %}\n a {{ b }} \n{% endraw %}\nx",
    "  {% raw %} a {% endraw %}  \nb",
    "{%- raw %} a {%- endraw +%}\nb",
    "a {#- multi\nline -#} b\n{# one #}{# two #}\nc",
    "{% set a %}\n  x\n{% endset %}\n[{{ a }}]",
    "text { not a tag } {% if yes %}%} }}{% endif %} # {#",
    "line one\n{%- set x = 1 -%}\nline two",
    "{{\n  n\n  +\n  1\n}}",
    "{% set x = {\n 'a': 1,\n 'b': [1,\n 2]\n} %}{{ x }}",
    "",
    "\n",
    "\n\n",
    "plain",
    "a {% raw %}",
    "a {%- raw -%} ",
]

FILTERS = r"""
{{ neg|abs }} {{ f|abs }} {{ yes|abs }}
{{ s|abs }}
{{ s|capitalize }} {{ s|upper }} {{ s|lower }} {{ s|title }} {{ 'foo-bar (baz) [q] it\'s'|title }} {{ 5|upper }} {{ nil|upper }} {{ missing|upper }}
{{ uni|upper }} {{ uni|lower }} {{ uni|title }} {{ uni|capitalize }} {{ uni.swapcase() }} {{ uni.casefold() }} {{ uni.title() }} {{ 'ΑΣ ΣΑΣ Σ'|lower }}
{{ 'ab'|center(7) }}| {{ 'ab'|center(6) }}| {{ 'abc'|center(6) }}| {{ 'abcdef'|center(3) }}|
{{ missing|default('x') }} {{ nil|default('x') }} {{ nil|default('x', true) }} {{ ''|default('x', boolean=true) }} {{ missing|d }} {{ 0|default(5) }} {{ missing|default(default_value='q') }} {{ missing.a|default('x') }}
{{ d.zz|default('x') }} {{ d.zz.y|default('x') }}
{{ html|escape }} {{ html|e }} {{ html|escape|escape }} {{ html|safe|escape }} {{ html|forceescape }} {{ html|safe|forceescape }} {{ nil|escape }}
{{ html|safe }} {{ 'a'|safe + '<b>' }} {{ '<b>' + 'a'|safe }} {{ 'a'|safe ~ '<b>' }} {{ ('a'|safe + '<' + '>'|safe) }} {{ ('<'|safe * 2) + '<' }} {{ ('<'|safe|upper) + '<' }} {{ (' <'|safe|trim) + '<' }} {{ ('<x'|safe)[0] + '<' }} {{ ('<'|safe|string) + '<' }} {{ ('a<'|safe).replace('a', '<') }} {{ ('<'|safe|replace('<', '>')) + '<' }}
{{ s|length }} {{ l|length }} {{ d|length }} {{ missing|length }} {{ uni|count }} {{ range(4)|length }} {{ d.items()|length }}
{{ n|length }}
{{ nil|length }}
{{ l|map('string')|length }}
{{ '42'|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 3.9|int }} {{ -3.9|int }} {{ '0x1f'|int(base=16) }} {{ '1f'|int(0, 16) }} {{ ' 42 '|int }} {{ '1_000'|int }} {{ true|int }} {{ nil|int }} {{ []|int(default=7) }} {{ '1e3'|int }} {{ '-5'|int }} {{ ''|int }} {{ 'nan'|int }} {{ '0b11'|int(0, 2) }} {{ '0b11'|int(0, 0) }}
{{ missing|int }}
{{ 'inf'|int }}
{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(2.5) }} {{ 3|float }} {{ ' 1e3 '|float }} {{ nil|float }} {{ '1_0.5'|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ '0x10'|float }}
{{ missing|float }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 1234.5678|round(-2) }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 2.123|round(2, 'ceil') }} {{ 42|round }} {{ 1250|round(-2) }} {{ 1350|round(-2) }} {{ -2.5|round }} {{ 7|round(1, 'floor') }}
{{ 'x'|round }}
{{ 1.5|round(1, 'bad') }}
{{ '%s and %s'|format('a', 1) }} {{ '%(x)s'|format(x=5) }} {{ 'no'|format }}
{{ '%s'|format(1, x=2) }}
{{ t|trim }}| {{ 'xxaxx'|trim('x') }} {{ '\u00a0 a\u2003'|trim }}| {{ 5|trim }} {{ nil|trim }} {{ 'abcba'|trim('ab') }} {{ missing|trim }}|
{{ 'aaa'|replace('a', 'b') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 'abc'|replace('', '-') }} {{ 'abc'|replace('', '-', 2) }} {{ 'abc'|replace('x', 'y') }} {{ 515|replace(5, 6) }} {{ 'a.b'|replace('.', '') }} {{ ''|replace('', 'x') }} {{ 'é👩'|replace('', '.') }}
{{ 'abc'|replace('a') }}
{{ 'a\nb\n\nc'|indent }} {{ 'a\nb'|indent(2, true) }} {{ 'a\n\nb'|indent(2, blank=true) }} {{ 'a\nb'|indent('--') }} {{ 'a'|indent(first=True) }} {{ ''|indent(2, true) }}| {{ 'a\n'|indent(2) }}| {{ lines|indent(3) }} {{ 'a\r'|indent(2) }}| {{ 'a\nb'|indent(width=1) }} {{ '<\n<'|safe|indent(1) + '<' }}
{{ 5|indent }}
{{ missing|indent }}
{{ 'Hello wide world'|truncate(9) }} {{ 'Hello wide world'|truncate(9, true) }} {{ 'Hello wide world'|truncate(14) }} {{ 'Hello wide world'|truncate(9, false, '!', 0) }} {{ 'short'|truncate(3, leeway=10) }}
{{ 'a'|truncate(2) }}
{{ missing|truncate(9) }}|{{ l|truncate(9) }}
{{ range(99)|truncate(9) }}
{{ 'one two, three_x four-5'|wordcount }} {{ ''|wordcount }}
{{ 'a b&c/é?'|urlencode }} {{ {'a b': 'c&d', 'e': 1}|urlencode }} {{ [['x', 'y z']]|urlencode }}
{{ d|tojson }} {{ mixed|tojson }} {{ html|tojson }} {{ uni|tojson }} {{ uni|tojson(ensure_ascii=true) }} {{ '\x00\x1f\x7f\u2028\\"/\b\f'|tojson }} {{ '\x7fé'|tojson(true) }} {{ 1.0|tojson }} {{ 1e400|tojson }} {{ nil|tojson }} {{ (1, 2)|tojson }} {{ []|tojson }}{{ {}|tojson }}
{{ d|tojson(indent=2) }} {{ mixed|tojson(indent=4) }} {{ []|tojson(indent=2) }} {{ [[]]|tojson(indent=0) }} {{ l|tojson(indent='--') }} {{ l|tojson(indent=-1) }} {{ d|tojson(sort_keys=true) }} {{ d|tojson(separators=(',', ':')) }} {{ d|tojson(indent=1, separators=(' ,', ' : ')) }} {{ {1: 'a', none: 2, true: 3, 1.5: 4}|tojson }}
{{ missing|tojson }}
{{ [missing]|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ d.items()|tojson }}
{{ range(3)|tojson }}
{{ namespace()|tojson }}
{{ d|tojson(bad=1) }}
{{ json|from_json }} {{ (json|from_json).a[1] }} {{ '1'|from_json }}
{{ '{bad'|from_json }}
{{ d|from_json }}
{{ l|join }} {{ l|join(', ') }} {{ people|join(', ', attribute='name') }} {{ [nil, missing, 1.5]|join('|') }} {{ s|join('.') }} {{ d|join(',') }} {{ missing|join }} {{ l|join(d=5) }}
{{ n|join }}
{{ l|first }} {{ l|last }} {{ s|first }}{{ s|last }} {{ []|first is defined }} {{ []|last is defined }} {{ d|first }} {{ d|last }} {{ missing|first is defined }} {{ l|map('string')|first }}
{{ l|map('string')|last }}
{{ n|first }}
{{ l|reverse|list }} {{ s|reverse }} {{ (1, 2)|reverse|list }} {{ d|reverse|list }} {{ l|map('string')|reverse }} {{ range(3)|reverse|list }}
{{ s|list }} {{ d|list }} {{ missing|list }} {{ (1, 2)|list }} {{ d.items()|list }}
{{ nil|list }}
{{ d|items|list }} {{ missing|items|list }}
{{ l|items|list }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ {'a': 2, 'b': 1}|dictsort(by='value') }} {{ {'a': 2, 'b': 1}|dictsort(reverse=true) }} {{ {}|dictsort }}
{{ missing|dictsort }}
{{ l|dictsort }}
{{ {'a': 1}|dictsort(by='x') }}
{{ {1: 1, 'a': 2}|dictsort }}
{{ l|sort }} {{ strs|sort }} {{ strs|sort(case_sensitive=true) }} {{ l|sort(reverse=true) }} {{ people|sort(attribute='age')|map(attribute='name')|list }} {{ people|sort(attribute='age,name', reverse=true)|map(attribute='name')|list }} {{ s|sort }} {{ d|sort }} {{ [nil, nil]|sort }} {{ [true, 0.5, 2]|sort }}
{{ mixed|sort }}
{{ people|sort(attribute='tag') }}
{{ [1, 1.0, 2, 'a', 'A', 'a']|unique|list }} {{ strs|unique(case_sensitive=true)|list }} {{ people|unique(attribute='age')|map(attribute='name')|list }}
{{ [[]]|unique|list }}
{{ l|min }} {{ l|max }} {{ strs|min }} {{ strs|max }} {{ strs|max(case_sensitive=true) }} {{ (people|min(attribute='age')).name }} {{ []|min is defined }} {{ [2, 1.5]|max }}
{{ mixed|max }}
{{ l|sum }} {{ people|sum(attribute='age') }} {{ [[1], [2]]|sum(start=[]) }} {{ [0.1, 0.2]|sum }} {{ []|sum }} {{ l|sum(start=10) }}
{{ strs|sum }}
{{ people|sum(attribute='zz') }}
{{ l|batch(2)|list }} {{ l|batch(2, 'x')|list }} {{ []|batch(2)|list }} {{ range(7)|batch(3)|list }} {{ l|slice(2)|list }} {{ l|slice(5, '-')|list }} {{ range(7)|slice(3)|list }} {{ l|batch(0)|list }}
{{ l|slice(0)|list }}
{{ people|groupby('age')|list }} {% for g in people|groupby('age') %}{{ g.grouper }}:{{ g.list|length }} {{ g[0] }} {% endfor %}{% for k, v in people|groupby('name') %}{{ k }};{% endfor %}{{ people|groupby('tag', default='none')|map(attribute='grouper')|list }}
{{ people|map(attribute='name')|list }} {{ people|map(attribute='zz', default='-')|list }} {{ strs|map('upper')|list }} {{ l|map('string')|map('center', 3)|list }} {{ people|map(attribute='zz')|list }} {{ strs|map('replace', 'a', 'x')|join }} {{ missing|map('upper')|list }} {{ [[1, 2]]|map('first')|list }} {{ [{'a': {'b': [5]}}]|map(attribute='a.b.0')|list }} {{ people|map('attr', 'name')|list }}
{{ strs|map('nofilter')|list }}
{{ strs|map|list }}
{{ strs|map(attribute='a', bad=1)|list }}
{{ n|map('upper')|list }}
{{ l|select|list }} {{ l|select('odd')|list }} {{ l|select('>', 1)|list }} {{ l|reject('odd')|list }} {{ mixed|select('string')|list }} {{ mixed|reject('none')|list|length }} {{ people|selectattr('tag')|map(attribute='name')|list }} {{ people|selectattr('age', 'equalto', 30)|list|length }} {{ people|selectattr('tag', 'defined')|list|length }} {{ people|rejectattr('tag', 'defined')|map(attribute='name')|list }} {{ people|selectattr('age', 'in', [25])|list|length }} {{ people|selectattr('name', 'eq', 'Bo')|first }} {{ missing|selectattr('x')|list }} {{ l|select('divisibleby', 3)|list }} {{ l|reject|list }}
{{ l|select('notest')|list }}
{{ people|selectattr|list }}
{{ missing|selectattr|list }} {{ []|map('nofilter')|list }} {{ ''|select('notest')|list }} {{ missing|map|list }}
{{ l|sort(reverse='y') }}
{% if l|select('gt', 5) %}generators are true{% endif %} {% if l|select('gt', 5)|list %}no{% else %}lists are not{% endif %}
{% set g = l|map('string') %}{{ g|join }}{{ g|join }}|{{ g is iterable }}{{ g is sequence }}{{ g is string }}
{{ people|selectattr('a.b')|list }}
{{ l|first|string + '!' }} {{ s|upper|lower|title }} {{ l|map('float')|sum|round(1)|string|length }} {{ (n|string).rjust(5, '0') }}
{{ s|upper() }} {{ s|replace(old='H', new='J') }} {{ s|replace('H', new='J') }}
{{ s|replace('H', old='J') }}
{{ s|upper(1) }}
{{ s|upper.x }}
{{ l|tojson|length }} {{ l|string|length }} {{ d|string }} {{ 1.0|string }} {{ nil|string }} {{ missing|string }}|
"""

TESTS = r"""
{{ s is defined }} {{ missing is defined }} {{ missing is undefined }} {{ d.zz is defined }} {{ nil is none }} {{ missing is none }} {{ nil is defined }}
{{ s is string }} {{ n is string }} {{ s|safe is string }} {{ missing is string }} {{ s is iterable }} {{ n is iterable }} {{ d is iterable }} {{ missing is iterable }} {{ nil is iterable }} {{ s is sequence }} {{ l is sequence }} {{ d is sequence }} {{ n is sequence }} {{ missing is sequence }} {{ range(2) is sequence }} {{ d.items() is sequence }} {{ d.keys() is iterable }} {{ (1,) is sequence }}
{{ d is mapping }} {{ l is mapping }} {{ missing is mapping }} {{ namespace() is mapping }} {{ n is number }} {{ f is number }} {{ yes is number }} {{ s is number }} {{ n is integer }} {{ yes is integer }} {{ f is integer }} {{ f is float }} {{ yes is boolean }} {{ n is boolean }} {{ yes is true }} {{ 1 is true }} {{ no is false }} {{ 0 is false }} {{ nil is false }}
{{ n is odd }} {{ n is even }} {{ neg is odd }} {{ 6 is divisibleby 3 }} {{ 6 is divisibleby(4) }} {{ 2.0 is even }}
{{ s is odd }}
{{ missing is odd }}
{{ 6 is divisibleby 0 }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'Abc' is lower }} {{ '123' is upper }} {{ 5 is lower }}
{{ range is callable }} {{ s.upper is callable }} {{ n is callable }} {{ missing is callable }} {{ namespace is callable }}
{{ n is sameas n }} {{ nil is sameas none }} {{ 1 is sameas true }} {{ l is sameas l }} {{ [] is sameas [] }} {{ yes is sameas true }}
{{ s|safe is escaped }} {{ s is escaped }} {{ 1 is in l }} {{ 'a' is in 'abc' }} {{ 5 is not in l }} {{ 'x' is in(['x']) }}
{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'defined' is test }} {{ 'nope' is test }} {{ 'tojson' is filter }}
{{ n is eq 7 }} {{ n is equalto 7.0 }} {{ n is ne 8 }} {{ n is gt 5 }} {{ n is ge 7 }} {{ n is lt 5 }} {{ n is le 7 }} {{ n is greaterthan 5 }} {{ n is lessthan 5 }} {{ n is eq(7) and n is gt(1) }}
{{ s is gt 5 }}
{{ n is defined and n is number }} {{ n is not defined or true }} {{ not n is defined }} {{ (n is defined) ~ 'x' }} {{ 'a' if n is defined else 'b' }} {{ n is number == true }}
{{ n is defined is string }}
{{ n is notest }}
{{ n is string('x') }}
{{ n is divisibleby }}
{{ l is eq [3, 1, 2] }} {{ d is eq {} }} {{ s is in ['Hello, Wörld'] }} {{ 'x' is eq 'x' 'y' }}
"""

METHODS = r"""
{{ s.split() }} {{ s.split(',') }} {{ s.split(', ', 1) }} {{ 'a,b,c'.split(',', 1) }} {{ 'a  b '.split() }} {{ ' a b c '.split(none, 1) }} {{ 'a  b'.split(' ') }} {{ ''.split() }} {{ ''.split(',') }} {{ 'abc'.split('b')[-1] }} {{ 'a\u2003b'.split() }} {{ 'a,b,c'.split(maxsplit=1, sep=',') }} {{ 'aXbX'.split('X') }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'a b c'.rsplit() }} {{ 'aaa'.rsplit('a') }} {{ 'x'.rsplit(',') }}
{{ 'a'.split('') }}
{{ 'a'.split(1) }}
{{ t.strip() }}|{{ t.lstrip() }}|{{ t.rstrip() }}|{{ 'xxaxx'.strip('x') }} {{ 'xyax'.lstrip('xy') }} {{ 'abc'.rstrip('cb') }} {{ 'a\n'.rstrip('\n') }} {{ 'éaé'.strip('é') }} {{ 'a'.strip(none) }}
{{ 'a'.strip(1) }}
{{ 'a'.strip(missing) }}
{{ s.startswith('Hell') }} {{ s.startswith(('x', 'H')) }} {{ s.startswith('ello', 1) }} {{ s.startswith('H', 0, 0) }} {{ s.endswith('ld') }} {{ s.endswith('x') }} {{ s.endswith(('x', 'd')) }} {{ s.endswith('') }} {{ ''.startswith('') }} {{ 'abc'.startswith('', 5) }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'abc'.endswith('c', -1) }}
{{ s.startswith(1) }}
{{ s.startswith(missing) }}
{{ s.startswith(['H']) }}
{{ 'aXbX'.replace('X', '-') }} {{ 'aXbX'.replace('X', '-', 1) }} {{ 'abc'.replace('', '.') }} {{ 'aaa'.replace('aa', 'b') }}
{{ 'a'.replace('a', 1) }}
{{ 'a'.replace('a') }}
{{ 'a'.replace(old='a', new='b') }}
{{ 'hello'.find('l') }} {{ 'hello'.rfind('l') }} {{ 'hello'.find('z') }} {{ 'hello'.index('e') }} {{ 'hello'.find('l', 3) }} {{ 'hello'.find('l', 0, 2) }} {{ 'éèl'.find('l') }} {{ 'hello'.count('l') }} {{ 'aaaa'.count('aa') }} {{ 'abc'.count('') }} {{ 'abc'.find('') }} {{ 'abc'.find('', 3) }} {{ 'abc'.find('', 4) }} {{ 'abc'.rfind('') }} {{ 'abc'.find('b', -2) }} {{ 'hello'.rindex('l') }}
{{ 'hello'.index('z') }}
{{ 'hello'.find(1) }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }}
{{ 'a'.partition('') }}
{{ 'unhappy'.removeprefix('un') }} {{ 'file.txt'.removesuffix('.txt') }} {{ 'x'.removeprefix('xx') }} {{ 'abc'.removesuffix('') }}
{{ 'ab'.center(6) }}|{{ 'ab'.center(5) }}|{{ 'ab'.center(5, '*') }}|{{ 'ab'.ljust(5) }}|{{ 'ab'.rjust(5, '.') }}|{{ '42'.zfill(5) }}|{{ '-42'.zfill(5) }}|{{ 'abc'.zfill(2) }}
{{ 'ab'.center(5, '**') }}
{{ lines.splitlines() }} {{ lines.splitlines(true) }} {{ ''.splitlines() }} {{ 'a\n\nb'.splitlines() }} {{ 'a'.splitlines(keepends=true) }}
{{ ', '.join(['a', 'b']) }} {{ ''.join([]) }} {{ '-'.join('abc') }} {{ ','.join(d) }} {{ ','.join(strs|map('upper')) }}
{{ ','.join([1]) }}
{{ ','.join(n) }}
{{ 'aBc'.swapcase() }} {{ 'hello world'.title() }} {{ "it's".title() }} {{ 'HELLO'.capitalize() }} {{ 'ǆ'.title() }} {{ 'ß'.upper() }} {{ 'ﬁx'.title() }} {{ 'ﬁx'.capitalize() }}
{{ 'abc'.isalpha() }} {{ 'ab1'.isalnum() }} {{ '12'.isdigit() }} {{ '²'.isdigit() }} {{ '²'.isdecimal() }} {{ '½'.isnumeric() }} {{ ' \t'.isspace() }} {{ ''.isspace() }} {{ 'abc'.islower() }} {{ 'ABC'.isupper() }} {{ 'é'.isascii() }} {{ ''.isascii() }} {{ 'a b'.isalpha() }} {{ '1a'.isupper() }}
{{ 'abc'.isalpha(1) }}
{{ '{} {}'.format(1, 'a') }} {{ '{0} {1} {0}'.format('a', 'b') }} {{ '{x}-{y}'.format(x=1, y=2) }} {{ '{{}} {}'.format(5) }} {{ '{a.b}{c[0]}{d[k]}'.format(a={'b': 1}, c=[2], d={'k': 3}) }} {{ '{!r} {!s}'.format('q', 'q') }} {{ '{}'.format(nil) }} {{ '{}'.format(l) }} {{ '{}'.format(1.0) }} {{ '{}'.format(true) }} {{ '{}'.format(missing) }}|
{{ '{:5}|{:<5}|{:>5}|{:^5}|{:*^7}|{:05d}|{:+}|{:,}|{:_}'.format('a', 'b', 'c', 'd', 'e', 42, 5, 1234567, 1234567) }} {{ '{:.2f} {:8.3f} {:e} {:g} {:.0f} {:%} {:.1%}'.format(3.14159, 2.5, 12345.678, 0.0001, 2.5, 0.25, 0.256) }} {{ '{:x} {:X} {:#x} {:b} {:#o} {:c}'.format(255, 255, 255, 5, 8, 65) }} {{ '{:.3}'.format('abcdef') }} {{ '{:.3}'.format(3.14159) }} {{ '{:{}}|'.format('a', 5) }} {{ '{:{w}.{p}f}'.format(3.14159, w=8, p=2) }} {{ '{:,.2f}'.format(1234567.891) }} {{ '{:d}'.format(true) }} {{ '{:08.2f}'.format(-3.14159) }} {{ '{:=+6}'.format(5) }} {{ '{:,}'.format(1234.5) }} {{ '{:6}|{:<6}|'.format(5, 5) }} {{ '{: d}'.format(5) }}
{{ '{}'.format() }}
{{ '{x}'.format() }}
{{ '{0} {}'.format(1, 2) }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{:d}'.format('a') }}
{{ '{:s}'.format(5) }}
{{ '{:5}'.format(nil) }}
{{ '{:d}'.format(1.5) }}
{{ '{.x}'.format(d) }} {{ '{[a]}'.format(d) }} {{ '{[0]}'.format(l) }}
{{ '{x}'.format_map({'x': 1}) }}
{{ 'abc'.upper().center(9, '.').strip('.') }} {{ s.lower().replace('hello', 'bye').title() }} {{ messages[0].content.split('a') }} {{ (s ~ s).split('H')|length }}
{{ 'x'.bad }}|{{ 'x'.bad() }}
{{ n.upper() }}
{{ nil.strip() }}
{{ missing.strip() }}
{{ l.strip() }}
{{ d.keys()|list }} {{ d.values()|list }} {{ d.items()|list|first }} {{ d.keys()|sort }} {{ d.items()|map('first')|list }} {{ (d.items()|list)[0][1] }}
{{ d.items(1) }}
{{ d.keys()[0] }}
"""

MALFORMED = [
    "{{",
    "{{ n",
    "{{ n }",
    "{% if yes %}",
    "{% if yes %}{% else %}",
    "{% endif %}",
    "{% for %}{% endfor %}",
    "{% for x l %}{% endfor %}",
    "{% for x in %}{% endfor %}",
    "{% for x in l %}{% endif %}",
    "{% if %}{% endif %}",
    "{% foo %}",
    "{% %}",
    "{{ }}",
    "{{ 1 + }}",
    "{{ (1 }}",
    "{{ [1, 2 }}",
    "{{ {'a' 1} }}",
    "{{ 'abc }}",
    "{{ a b }}",
    "{{ a. }}",
    "{{ a.'b' }}",
    "{{ a | }}",
    "{{ a | 1 }}",
    "{{ a is }}",
    "{{ f(a=1, 2) }}",
    "{{ f(a=1, a=2) }}",
    "{{ f(,) }}",
    "{{ 1 ! 2 }}",
    "{{ a $ b }}",
    "{% set %}",
    "{% set x %}",
    "{% set x = %}",
    "{% set x = 1 %}{% endset %}",
    "{% macro %}{% endmacro %}",
    "{% macro f %}{% endmacro %}",
    "{% macro f( %}{% endmacro %}",
    "{% macro f(1) %}{% endmacro %}",
    "{# never closed",
    "{% raw %} never closed",
    "{% call f %}{% endcall %}",
    "{% filter %}{% endfilter %}",
    "{{ a[1 }}",
    "{{ a[] }}",
    "{{ ) }}",
    "{{ (] }}",
    "{% if a %}{% elif %}{% endif %}",
    "{% else %}",
    "{% elif yes %}",
    "{% do 1 %}",
    "{{ not }}",
    "{{ a not b }}",
    "{{ a if }}",
    "{{ *a }}",
    "{{ f(**) }}",
    "{% set a.b.c = 1 %}",
    "{% set f() = 1 %}",
    "{% set 'a' = 1 %}",
    "{% for 1 in l %}{% endfor %}",
    "{% for none in l %}{% endfor %}",
    "{% macro none() %}{% endmacro %}",
    "{% with a %}{% endwith %}",
    "{% continue %}",
    "{{ 1..2 }}",
    "{{ 1.e }}",
    "{{ n|nofilter }}",
    "{{ n is notest }}",
    "{{ '\\xg' }}",
    "{{ '\\u12' }}",
    "{% endfor",
    "{% if yes }}x{% endif %}",
    "{{ yes %}",
    "{{ 1 if 2 else }}",
    "{{ {1, 2} }}",
    "{{ {1: 2, } }}",
    "{{ [,] }}",
    "{{ (,) }}",
    "{{ a=1 }}",
    "{% set x, = 1 %}{{ x }}",
    "{{ a:b }}",
    "{{ a; }}",
    "{% if a; %}{% endif %}",
    "{% if yes: %}colon{% endif %}",
    "{{ ~a }}",
    "{{ a ~ }}",
    "{{ a ** }}",
    "{% for x in l recursive if x %}{% endfor %}",
    "{% for x in l if x recursive %}{{ x }}{% endfor %}",
    "{% generation %}",
    "{% endgeneration %}",
    "{{ lambda: 1 }}",
    "{{ a := 1 }}",
    "{{ a @ b }}",
    "{{ a & b }}",
]

SNIPPETS = []
for block in (PRINTING, OPERATORS, LOOKUP, FILTERS, TESTS, METHODS):
    # One line, one template; a line that prints several things also goes through them one by one.
    for line in block.strip("\n").split("\n"):
        SNIPPETS.append(line)
        parts = line.split("}} {{")
        if len(parts) > 1 and "{%" not in line:
            for i, part in enumerate(parts):
                SNIPPETS.append(("" if i == 0 else "{{") + part + ("" if i + 1 == len(parts) else "}}"))
pending = ""
for line in STATEMENTS.strip("\n").split("\n"):
    # Lines that leave a block open go on in the next one.
    pending = pending + "\n" + line if pending else line
    opened = sum(pending.count("{% " + w) for w in ("macro", "set x|indent"))
    closed = sum(pending.count("{% end" + w) for w in ("macro", "set %}{{ x }}{% set x | upper")) + pending.count("\nb{% endset %}")
    if closed < opened:
        continue
    SNIPPETS.append(pending)
    pending = ""
SNIPPETS += WHITESPACE + MALFORMED + ["{{ '\\xZZ' }}"]
