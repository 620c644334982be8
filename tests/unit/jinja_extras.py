#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Filters and methods that no chat template uses stand in extras_table.c, and those that one uses do not.  Usage: jinja_extras.py all|own

`own` holds the templates of this tree against the table; `all` those of the reference material too, and sees that each name outside of the
table is used by one of them. Exit status: 0 as claimed, 1 not, 77 nothing to compare with."""
import glob
import os
import re
import sys

try:
    from jinja2 import Environment, nodes
except ImportError:
    print("SKIP: python3-jinja2 is not installed")
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "material"))
OWN = [os.path.join(HERE, "templates"), os.path.join(ROOT, "corpus"), os.path.join(ROOT, "tests", "cli")]


def table(name, list_of_rows):
    """{name: function} of a table of the interpreter; functions of Python that it lacks are left out."""
    with open(os.path.join(ROOT, "src", "text", "jinja", name), encoding="utf-8") as f:
        found = re.search(rf"\b{list_of_rows}\[\] = \{{(.*?)\{{NULL, NULL\}}", f.read(), re.S)
    rows = dict(re.findall(r'\{"([^"]+)",\s*(\w+)\}', found.group(1)))
    return {name: function for name, function in rows.items() if function != "NULL"}


def used(folders):
    """The filters and the methods of templates, and how many templates there are."""
    env, filters, methods, n = Environment(extensions=["jinja2.ext.loopcontrols"]), set(), set(), 0
    for path in sorted(path for folder in folders for path in glob.glob(os.path.join(folder, "*.jinja"))):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", f.read())
        tree, n = env.parse(text), n + 1
        for node in tree.find_all(nodes.Filter):
            filters.add(node.name)
            if node.name in ("map", "select", "reject") and node.args and isinstance(node.args[0], nodes.Const):
                filters.add(node.args[0].value)
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Getattr):
                methods.add(call.node.attr)
    return filters, methods, n


def main():
    folders, everything = OWN, sys.argv[1] == "all"
    if everything:
        from where import NEEDS_REFERENCE, shared
        if not os.path.isdir(shared("templates")):
            print("SKIP: " + NEEDS_REFERENCE + "chat templates of real models (templates/)")
            return 77
        folders = OWN + [shared("templates")]
    filters, methods, n = used(folders)
    core_filters = {**table("filters.c", "table"), **table("filters_number.c", "table"), **table("filters_seq.c", "table")}
    core_methods = {**table("methods.c", "table"), **table("methods_of.c", "of_list"), **table("methods_of.c", "of_dict")}
    extra = [table("extras_table.c", name) for name in ("of_str", "of_list", "of_tuple", "of_dict")]
    wrong = [f"filter {name} is used, and stands in extras_table.c" for name in filters & set(table("extras_table.c", "filters"))]
    wrong += [f"method {name} is used, and stands in extras_table.c" for name in methods & set().union(*extra) - set(core_methods)]
    if everything:
        for what, core, uses in (("filter", core_filters, filters), ("method", core_methods, methods)):
            functions = {function for name, function in core.items() if name in uses}  # another name of one that is used may stay
            wrong += [f"{what} {name} is used by no template" for name, function in core.items() if function not in functions]
    print("\n".join(sorted(wrong)) or f"{n} templates use {len(filters)} filters and {len(methods)} methods, none of the table's")
    return 1 if wrong else 0


sys.exit(main())
