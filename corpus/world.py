# SPDX-License-Identifier: Apache-2.0
"""The village of Alderbrook: who lives there, and what is true of them. Every text of the corpus keeps to these facts."""


class Person:
    """One inhabitant. `kind` is "fox", `he` and the others are pronouns."""

    def __init__(self, name, kind, sex, home, work, food, fear, owns, friend):
        self.name, self.kind, self.home, self.work = name, kind, home, work
        self.food, self.fear, self.owns, self.friend_name = food, fear, owns, friend
        self.he, self.him, self.his = ("he", "him", "his") if sex == "m" else ("she", "her", "her")


def article(words):
    return ("an " if words[0] in "aeiou" else "a ") + words


PEOPLE = [Person(*line.split("; ")) for line in """\
Mira; fox; f; in the old mill; baker; honey cakes; thunder; a copper kettle; Tobin
Tobin; badger; m; in the stone cottage; gardener; pea soup; deep water; a wooden wheelbarrow; Mira
Pip; mouse; m; in the clock tower; clock mender; cheese pie; the dark; a tiny lantern; Oona
Oona; owl; f; in the hollow oak; teacher; apple tart; loud bells; a big blue book; Pip
Bram; bear; m; in the hill house; woodcutter; blackberry jam; bees; a long saw; Nettie
Nettie; hedgehog; f; in the garden shed; tailor; mushroom stew; strong wind; a silver needle; Bram
Finn; otter; m; in the river hut; fisher; cress bread; being alone; a small green boat; Luma
Luma; rabbit; f; in the round burrow; letter carrier; carrot soup; thick fog; a leather bag; Finn
Gus; goose; m; in the pond house; bell ringer; oat porridge; high places; a brass bell; Hazel
Hazel; squirrel; f; in the tall pine; nut seller; roasted nuts; thin ice; a wicker basket; Gus
Odo; mole; m; in the deep tunnel; well digger; root stew; bright light; an iron spade; Wren
Wren; sparrow; f; on the chapel roof; singer; seed rolls; hail; a little flute; Odo
Rosa; cat; f; in the inn; innkeeper; cream buns; cold rain; a painted plate; Kit
Kit; dog; m; in the gatehouse; watchman; onion pie; fire; a loud whistle; Rosa
Elsie; girl; f; in the white house; pupil; plum jam; spiders; a paper kite; Jory
Jory; boy; m; in the smithy; smith's helper; cherry pie; ghosts; a toy drum; Elsie
Agnes; old woman; f; in the lighthouse; lighthouse keeper; fish soup; wild storms; a shining lamp; Silas
Silas; old man; m; in the library; librarian; ginger bread; forgetting things; a round glass; Agnes
Dora; duck; f; in the reed nest; swimming teacher; pond salad; dry summers; a yellow umbrella; Theo
Theo; toad; m; in the mossy well; weather teller; mint tea; storks; a striped hat; Dora""".split("\n")]
BY_NAME = {p.name: p for p in PEOPLE}
for p in PEOPLE:
    p.friend = BY_NAME[p.friend_name]


class Place:
    """`where` is "in the orchard", `name` "the orchard"; `way` says where it lies, `known` what it is known for."""

    def __init__(self, where, name, way, known):
        self.where, self.name, self.way, self.known = where, name, way, known


PLACES = [Place(*line.split("; ")) for line in """\
in the orchard; the orchard; behind the chapel; its sweet red apples
by the river; the river; south of the village; its smooth stones
in the whispering wood; the whispering wood; north of the village; its tall dark trees
on the long bridge; the long bridge; beside the white house; its seven arches
on windmill hill; windmill hill; east of the village; its strong wind
in the meadow; the meadow; west of the village; its wild flowers
by the lake; the lake; beyond the meadow; its clear cold water
at the harbour; the harbour; at the end of the river; its painted boats
in the market square; the market square; in the middle of the village; its stalls of fruit and bread
in the old ruin; the old ruin; deep in the wood; its broken stairs
behind the chapel; the chapel; next to the school; its singing bell
near the snowy pass; the snowy pass; high in the mountains; its deep white snow""".split("\n")]

COLOURS = "red blue green yellow white black golden silver purple brown".split()
THINGS = """kite key lantern map ring coin shell feather button spoon book bell ball scarf hat jar box drum whistle mirror blanket candle
crown basket letter ribbon mitten cup marble flag""".split()
WEATHER = "sunny rainy windy foggy snowy cloudy stormy frosty".split()
FRUIT = "apples pears plums cherries carrots eggs loaves buns candles onions nuts fish".split()
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
STRANGE_NAMES = """Alric Berta Cosmo Dagny Edda Fergus Greta Hugo Ines Jasper Katla Lorenz Mabel Nils Orla Percy Quentin Rufus Sigrid Tilda
Ulf Vera Wanda Xenia Yorick Zelda Bodo Cleo Dario Emil""".split()
