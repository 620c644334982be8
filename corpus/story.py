# SPDX-License-Identifier: Apache-2.0
"""Stories: plots as lists of beats, each beat a sentence or two of grammar. A story knows the facts that questions may be asked about."""
from grammar import capital, say
from world import COLOURS, PEOPLE, PLACES, THINGS, article

OPENING = [
    "[Once upon a time|Long ago|Once], {there} was {a_kind} [named|called] {C}. {He} lived {home} and was the {work} of the village.",
    "[Once upon a time|One day long ago], {a_kind} named {C} lived {home}. {He} was [a good|a busy|a cheerful|the best] {work}.",
    "{C} the {kind} lived {home}. [Everyone|Everybody in Alderbrook] [knew|liked] {him}, for {he} was a [kind|good|careful] {work}.",
    "In the village of Alderbrook lived {a_kind} named {C}. {He} was the {work}, and {he} liked {food} [best of all|more than anything].",
    "There was once {a_kind} named {C}, who lived {home} and loved {food}.",
]
MORNING = "[One|On a|On one] [sunny|bright|cold|misty|windy|quiet|warm|golden|frosty] [morning|afternoon|day|evening], "
ENDING = [
    "From that day on, {C} and {F} were [closer than ever|the best of friends|never far apart].",
    "[That night|That evening], {C} went home {home_to}[, tired but happy| with a smile|, and slept well|]. {He} had learned that {moral}.",
    "And {C} never forgot that {moral}.",
    "[\"You know,\"|\"Now I know,\"] said {C}, \"{moral}.\" And {F} [agreed|nodded|smiled].",
    "They [ate|shared] {food} together and laughed until [the moon came up|the stars came out|it was time for bed].",
    "[Everyone was glad|The whole village was glad], and {C} was the gladdest of all.",
]

# Each plot: what it is about, its moral, its beats, and questions (question, short answer, long answer).
PLOTS = {
    "lost": (
        "a lost {obj}",
        "[a friend makes every search shorter|it helps to ask a friend|those who look with patience find]",
        [
            MORNING
            + "{C} [could not find|lost] {his} {O}. {He} [looked under the bed|looked in every pocket|looked behind the"
            " door|turned every box over], but it was [gone|not there|nowhere].",
            (
                "[\"Oh no,\"|\"Oh dear,\"] said {C}. \"[Where can my {obj} be|Who has seen my {obj}|What shall I do"
                " without my {obj}]?\""
            ),
            (
                "{He} [went to see|ran to|walked to] {F} the {fkind}, who lived {fhome}. \"[Please help me|Can you help"
                " me], {F},\" [said {C}|{he} said]. \"I lost my {O}.\""
            ),
            (
                "[\"Of course,\" said {F}. \"Let us look together.\"|\"Do not worry,\" said {F}. \"We will find"
                " it.\"|{F} put down {fhis} work at once. \"Where did you have it last?\" {fhe} asked.]"
            ),
            (
                "[They looked {where2}, but they found only [old leaves|a wet stone|an empty nest].|First they went to"
                " {place2}. There was nothing but [mud|grass|wind] there.|They asked everyone they met, but nobody had"
                " seen it.]"
            ),
            (
                "Then {C} [remembered|thought of] {place}. [\"I was there yesterday!\" {he} cried.|\"I sat there to"
                " rest,\" {he} said.]"
            ),
            (
                "[They hurried to {place}.|They ran all the way.|Off they went.] And there, {where}, [lay the"
                " {O}|something {colour} shone in the grass: it was the {obj}|they saw the {O}]."
            ),
            (
                "{C} was so [happy|glad] that {he} [danced|jumped|sang]. \"[Thank you|Thank you so much], {F}!\" {he}"
                " said."
            ),
        ],
        [
            ("Who lost the {O}?", "{C}", "{C} lost the {O}."),
            ("What did {C} lose?", "{his} {O}", "{C} lost {his} {O}."),
            ("Where was the {obj}?", "{where}", "The {obj} was {where}."),
            ("Who helped {C}?", "{F}", "{F} the {fkind} helped {C}."),
        ],
    ),
    "found": (
        "a {obj} that someone lost",
        "[honest people sleep well|what is found should go home|a kind deed comes back]",
        [
            MORNING + "{C} was walking {where} when {he} saw something [shine|glitter|lie] in the grass. It was {a_O}.",
            (
                "[\"How pretty!\"|\"What a fine {obj}!\"] said {C}. \"But it is not mine. [Someone must miss"
                " it|Somebody will be sad without it|I must find out whose it is].\""
            ),
            (
                "{He} [asked the people {where2}|asked at every door|showed it to everyone {where2}], but nobody knew"
                " [whose it was|the {obj}]."
            ),
            (
                "[The sun went down and {C} was tired.|{C} grew tired, and {his} feet hurt.] {He} wanted to keep the"
                " {obj}, [but that would not be right|but {he} walked on]."
            ),
            "At last {he} came to {F} the {fkind}, who sat {fhome} and [cried|looked very sad|did not want to eat].",
            (
                "\"[What is wrong|Why are you so sad], {F}?\" asked {C}. \"I lost my {O},\" said {F}. \"[My grandmother"
                " gave it to me|It was the best thing I had].\""
            ),
            (
                "{C} [smiled|laughed] and held out the {O}. \"Is this it?\" {F} [jumped with joy|could not believe"
                " it|began to smile]."
            ),
            "\"Thank you, {C}!\" said {F}, and {fhe} gave {him} [a plate of {food}|a big hug|half of {fhis} supper].",
        ],
        [
            ("Who found the {O}?", "{C}", "{C} found the {O}."),
            ("Where did {C} find the {obj}?", "{where}", "{C} found the {obj} {where}."),
            ("Whose {obj} was it?", "{F}'s", "The {obj} belonged to {F}."),
            ("What did {C} find?", "{a_O}", "{C} found {a_O}."),
        ],
    ),
    "storm": (
        "a storm",
        (
            "[a house is warm when friends are in it|many hands are stronger than the wind|after every storm comes a"
            " quiet day]"
        ),
        [
            (
                "One [night|evening] a [great|terrible|wild] storm came over Alderbrook. The wind [howled|roared] and"
                " the rain [beat on the roofs|fell like stones]."
            ),
            (
                "{C} lay in bed {home} and [listened|could not sleep]. Then {he} heard [a knock|someone knock] at the"
                " door."
            ),
            (
                "It was {F} the {fkind}, [wet|wet and cold] from head to foot. \"The wind has taken my roof!\" said"
                " {F}. \"[May I come in|Can I stay here]?\""
            ),
            (
                "[\"Come in, come in!\" said {C}.|\"Quick, come to the fire!\" said {C}.] {He} gave {F} a [dry|warm]"
                " blanket and [a bowl of {food}|some {food}]."
            ),
            (
                "All night long the two friends [told stories|sang songs|played games] while the storm [shook the"
                " walls|raged outside]."
            ),
            (
                "In the morning the sun [came out|shone]. {C} [took|fetched] {his} tools and {they} went to {F}'s home"
                " together."
            ),
            (
                "[They found dry boards {where}.|They found strong wood {where}.] [Hammer, hammer, went {C}. Saw, saw,"
                " went {F}.|They worked until noon, and then until evening.]"
            ),
            (
                "Soon {F} had a new roof, [better than the old one|stronger than before]. \"[I will never forget"
                " this|You are a true friend], {C},\" said {F}."
            ),
        ],
        [
            ("Who came to {C} in the storm?", "{F}", "{F} came to {C} in the storm."),
            ("Whose roof did the wind take?", "{F}'s", "The wind took {F}'s roof."),
            ("Where did they find the wood?", "{where}", "They found the wood {where}."),
            ("What did {C} give {F} to eat?", "{food}", "{C} gave {F} {food}."),
        ],
    ),
    "gift": (
        "a gift",
        "[the best gifts are made with love|a gift is worth what it means|it is good to give]",
        [
            "It was {F}'s birthday [tomorrow|the next day], and {C} wanted to give {fhim} [something special|a gift].",
            (
                "\"[What would {F} like|What does a {fkind} like]?\" {C} [wondered|asked {himself}]. {He} thought and"
                " thought."
            ),
            (
                "Then {he} remembered that {F} had always wanted {a_O}. [But {C} had no money.|But a {obj} costs a lot"
                " of coins.]"
            ),
            (
                "So {C} [looked for work|went to work] {where}. [{He} helped an old man carry baskets.|{He} swept the"
                " leaves all day long.|{He} carried water for a whole day.]"
            ),
            "In the evening the old man said, \"You have worked hard. [Take this {obj}|Here is {a_O} for you].\"",
            (
                "{C} [ran home|hurried home] and wrapped the {O} in [paper|a clean cloth|a big leaf]. {He} [could"
                " hardly sleep|was very excited]."
            ),
            (
                "[The next morning|On the birthday] {C} knocked at the door, for {F} lived {fhome}. \"Happy birthday,"
                " {F}!\" {he} said."
            ),
            (
                "{F} opened the gift and [gasped|laughed with joy]. \"{A_O}! [It is just what I wished for!|How did you"
                " know?]\" {fhe} said."
            ),
        ],
        [
            ("Whose birthday was it?", "{F}'s", "It was {F}'s birthday."),
            ("What did {C} give {F}?", "{a_O}", "{C} gave {F} {a_O}."),
            ("Where did {C} work?", "{where}", "{C} worked {where}."),
            ("Who got a gift?", "{F}", "{F} got a gift."),
        ],
    ),
    "brave": (
        "being brave",
        "[being brave means to be afraid and go on|fear grows small when you look at it|friends make us brave]",
        [
            (
                "There was one thing that {C} was afraid of: {fear}. [Everyone knew it.|{He} told nobody but {F}.|Even"
                " the thought of it made {him} shake.]"
            ),
            MORNING
            + "{F} the {fkind} went to {place} and did not come back. [The sun went down.|It grew late.] [Nobody knew"
            " what to do.|The others were worried.]",
            (
                "\"[Someone must go and look for {F}|We must find {F}],\" said [old Silas|Oona the owl|the watchman]."
                " [It was quiet.|Nobody spoke.]"
            ),
            (
                "{C} thought of {fear}, and {his} knees [shook|felt weak]. But then {he} thought of {F}. \"I will go,\""
                " {he} said."
            ),
            (
                "{He} [took|carried] {a_O} and walked to {place}. [Step by step {he} went on.|{His} heart beat"
                " fast.|\"I am not afraid,\" {he} said again and again.]"
            ),
            (
                "There {he} heard a [small|soft] voice. \"[Help! I am here!|Is anybody there?]\" It was {F}, who had"
                " [hurt a foot|fallen into a hole|lost the way]."
            ),
            (
                "{C} [pulled {F} out|took {F} by the hand|helped {F} up], and together they went home. [They did not"
                " even think of {fear}.|On the way they sang, and nothing was frightening any more.]"
            ),
            "\"You are the bravest {kind} I know,\" said {F}. {C} [smiled|laughed|turned red].",
        ],
        [
            ("What was {C} afraid of?", "{fear}", "{C} was afraid of {fear}."),
            ("Who did not come back?", "{F}", "{F} did not come back."),
            ("Where did {F} go?", "to {place}", "{F} went to {place}."),
            ("What did {C} carry?", "{a_O}", "{C} carried {a_O}."),
        ],
    ),
    "quarrel": (
        "a quarrel",
        "[a thing is twice as nice when it is shared|one kind word ends a quarrel|a friend is worth more than a thing]",
        [
            (
                "{C} and {F} the {fkind} were [good|best|old] friends. [They did everything together.|Every day they"
                " met {where2}.]"
            ),
            MORNING + "they found {a_O} {where}. \"I saw it first!\" said {C}. \"No, I saw it first!\" said {F}.",
            (
                "They [pulled|shouted] and [pulled|shouted], until {F} [went away|ran home] in tears. {C} kept the"
                " {obj}, but {he} was not happy."
            ),
            (
                "{He} sat {home} [and looked at the {obj}|alone]. [It was no fun alone.|The {obj} was only a {obj}, and"
                " there was nobody to play with.]"
            ),
            "{F} was sad too. {Fhe} sat {fhome} and did not even want to eat {ffood}.",
            (
                "The next day {C} took the {O} and went to {F}. \"[I am sorry|I was wrong],\" {he} said. \"[You may"
                " have it|It is yours too].\""
            ),
            (
                "\"I am sorry too,\" said {F}. \"[Let us share it|Let us keep it together]. [You take it on Monday and"
                " I take it on Tuesday|One day for you and one day for me].\""
            ),
            (
                "[So they did.|They shook hands.] And [the {obj} was more fun than ever|they never quarrelled about the"
                " {obj} again]."
            ),
        ],
        [
            ("What did they find?", "{a_O}", "They found {a_O}."),
            ("Who ran home in tears?", "{F}", "{F} went home in tears."),
            ("Where did they find the {obj}?", "{where}", "They found the {obj} {where}."),
            ("Who said sorry first?", "{C}", "{C} said sorry first."),
        ],
    ),
    "journey": (
        "a journey to {place}",
        (
            "[the best treasure is a friend|a long road is short with a friend|it is good to see the world and good to"
            " come home]"
        ),
        [
            MORNING
            + "{C} found an old map [in a book|under a stone|in a dusty box]. It showed the way to {place}, and there"
            " was a red cross on it.",
            (
                "\"A treasure!\" said {C}. {He} [packed|took] {food} and {a_O} and went to {F} the {fkind}. \"[Will you"
                " come with me|Do you want to come]?\""
            ),
            (
                "\"[Yes|Of course|With you I will go anywhere],\" said {F}. So they [set out|walked] together, [over"
                " the bridge|past the mill|along the road] and [through the fields|up the hill|into the mist]."
            ),
            (
                "[On the way they met|By the road sat] an old [crow|snail|frog] who was [hungry|thirsty]. {C} gave"
                " {it_him} some {food}. \"You are kind,\" said the old one. \"[Look under the big stone|Dig beside the"
                " tallest tree].\""
            ),
            (
                "[After a long time|At last|In the evening] they came to {place}. {C} [dug|looked] and {F}"
                " [dug|looked], and [there it was: a wooden chest|they found a wooden chest]."
            ),
            (
                "In the chest lay [no gold at all, only|nothing but] {a_O2} and a letter. \"[Whoever finds this has a"
                " good friend|You came together, and that is the treasure],\" said the letter."
            ),
            (
                "{C} and {F} looked at each other and [laughed|smiled]. [They gave the {obj2} to the school.|They took"
                " the {obj2} home.]"
            ),
        ],
        [
            ("Where did the map lead?", "to {place}", "The map led to {place}."),
            ("Who went with {C}?", "{F}", "{F} the {fkind} went with {C}."),
            ("What was in the chest?", "{a_O2}", "In the chest was {a_O2} and a letter."),
            ("What did {C} find in the morning?", "an old map", "{C} found an old map."),
        ],
    ),
    "stranger": (
        "a stranger",
        "[every friend was a stranger once|a warm word opens every door|nobody should be alone]",
        [
            MORNING
            + "a stranger came to Alderbrook. It was a little [deer|goat|crane|lamb|pony] with {a_O}, and nobody knew"
            " {its_his} name.",
            (
                "The stranger sat {where} and [spoke to nobody|looked at the ground]. [Some people whispered.|The"
                " others walked past.]"
            ),
            (
                "But {C} stopped. \"[Hello|Good day],\" {he} said. \"I am {C}. [What is your name|Who are you]?\" \"I"
                " am {S},\" said the stranger [softly|in a small voice]."
            ),
            (
                "\"[Are you hungry|Would you like something to eat]?\" asked {C}. {He} [fetched|brought] some {food},"
                " and they ate together."
            ),
            (
                "Then {F} the {fkind} came by. \"[That is a fine {obj}|What a lovely {obj}],\" {fhe} said. \"[Will you"
                " show it to me|May I see it]?\""
            ),
            (
                "{S} [smiled for the first time|began to smile]. Soon all three [played|sat|talked] together {where},"
                " and others came too."
            ),
            (
                "\"[I have no home|I have come a long way],\" said {S}. \"Then stay with us,\" said {C}. \"[There is"
                " room in Alderbrook|We have room for you].\""
            ),
            "So {S} stayed, and [nobody called {it_him} a stranger any more|the village had one more friend].",
        ],
        [
            ("Who came to Alderbrook?", "a stranger named {S}", "A stranger named {S} came to Alderbrook."),
            ("What did the stranger have?", "{a_O}", "The stranger had {a_O}."),
            ("Where did the stranger sit?", "{where}", "The stranger sat {where}."),
            ("Who spoke to the stranger first?", "{C}", "{C} spoke to the stranger first."),
        ],
    ),
    "mend": (
        "the broken {broken}",
        "[together everything can be mended|small hands can do great things|everyone is good at something]",
        [
            MORNING
            + "the {broken} of Alderbrook broke. [Crack! it went, and then it was still.|With a loud noise it fell to"
            " pieces.] [Everyone came running.|The whole village was sad.]",
            (
                "\"[Who can mend it|What shall we do now]?\" people asked. \"It is too [hard|big|old],\" said"
                " [some|one]. \"We need a new one,\" said [others|another]."
            ),
            (
                "\"[Let me try|I will mend it],\" said {C}. [Some of them laughed|A few shook their heads], because"
                " {he} was only {a_kind}."
            ),
            (
                "{C} went to {F} the {fkind}. \"I need {a_O},\" {he} said. \"[You can have mine|Take it],\" said {F},"
                " \"and I will help you.\""
            ),
            (
                "They found [nails|rope|wood] {where}. {C} [held|measured] and {F} [hammered|tied the knots]. [All day"
                " long they worked.|They did not stop for supper.]"
            ),
            (
                "[When the moon rose|When the sun went down|At last] the {broken} was whole again. [It even looked"
                " better than before.|It was as good as new.]"
            ),
            "\"Hurrah for {C} and {F}!\" cried the people, and [Rosa brought {food}|there was {food}] for everyone.",
        ],
        [
            ("What broke?", "the {broken}", "The {broken} broke."),
            ("Who mended the {broken}?", "{C} and {F}", "{C} and {F} mended the {broken}."),
            ("Who helped {C}?", "{F}", "{F} the {fkind} helped {C}."),
            ("What did {C} need?", "{a_O}", "{C} needed {a_O}."),
        ],
    ),
    "seed": (
        "a seed",
        "[good things need time|those who wait are rewarded|little things grow great]",
        [
            MORNING
            + "{C} found a little {colour} seed {where}. \"[What will it be|I wonder what will grow from it]?\" {he}"
            " said.",
            (
                "{He} [planted it|put it into the earth] beside {his} door and gave it water. The next day {he} looked."
                " There was nothing [to see|but earth]."
            ),
            (
                "[\"Nothing will grow there,\" said a crow.|\"You are wasting your time,\" said a passing crow.] But"
                " {C} [watered it every day|did not give up]."
            ),
            (
                "{F} the {fkind} came to visit. \"[You must wait|A seed needs time],\" {fhe} said. \"[Sing to it|Tell"
                " it stories]. Plants like that.\""
            ),
            (
                "So {C} [sang|told stories] to the seed every evening. [A week passed.|The moon grew round and thin"
                " again.]"
            ),
            (
                "Then, one morning, there was a small green [leaf|shoot]. It grew and grew, [up to the window|higher"
                " than the roof], and [bore|was full of] {colour} [flowers|fruit]."
            ),
            (
                "{C} [picked|shared] the first one [for|with] {F}. \"[It tastes like sunshine|It is the sweetest in the"
                " world],\" said {F}."
            ),
        ],
        [
            ("What did {C} find?", "a little {colour} seed", "{C} found a little {colour} seed."),
            ("Where did {C} find the seed?", "{where}", "{C} found the seed {where}."),
            ("Who came to visit?", "{F}", "{F} the {fkind} came to visit."),
            ("What colour was the seed?", "{colour}", "The seed was {colour}."),
        ],
    ),
    "night": (
        "a noise in the night",
        (
            "[many things look small in the light|a noise is only a noise|those who are afraid should take a lamp and"
            " look]"
        ),
        [
            (
                "One night {C} woke up. [There was a noise|{He} heard something]: [tap, tap, tap|scratch, scratch|a"
                " long low moan]. It came from {place}."
            ),
            (
                "[\"A ghost!\" thought {C}.|\"What can that be?\" {he} whispered.] {He} pulled the blanket over {his}"
                " head, but the noise did not stop."
            ),
            (
                "So {he} [lit|took] a [lamp|candle] and went to {F} the {fkind}. \"Did you hear it?\" {he} asked. \"[I"
                " did|Yes],\" said {F}, \"and I [do not like it at all|am afraid too].\""
            ),
            (
                "\"[Let us go and look|Two are braver than one],\" said {C}. They [walked close together|held hands]"
                " until they came to {place}."
            ),
            (
                "The noise was very near now. {F} [held up the lamp|opened one eye]. And what did they see? [It was"
                " only|There was only] a little {small} that had caught its foot in {a_O}."
            ),
            (
                "[\"You poor thing,\"|\"Poor little one,\"] said {C}, and {he} [freed it|set it free]. The {small}"
                " [said thank you|jumped for joy] and ran away."
            ),
            (
                "{C} and {F} laughed all the way home. [They had been afraid of a {small}!|So much fear for one little"
                " {small}!]"
            ),
        ],
        [
            ("What made the noise?", "a little {small}", "A little {small} made the noise."),
            ("Where did the noise come from?", "from {place}", "The noise came from {place}."),
            ("Who went with {C}?", "{F}", "{F} the {fkind} went with {C}."),
            ("What had caught the {small}?", "{a_O}", "The {small} had caught its foot in {a_O}."),
        ],
    ),
    "contest": (
        "a contest",
        "[it is better to help than to win|a prize is nothing without a friend|the winner is the one who is kind]",
        [
            "Every [spring|summer|autumn] there was a [great|big] race in Alderbrook, and the winner got {a_O}.",
            (
                "\"This year I will win,\" said {C}. {He} [ran up and down the hill every day|trained from morning to"
                " night]."
            ),
            (
                "[The day of the race came.|Then the great day came.] Everyone stood {where}. \"One, two, three, go!\""
                " [cried Gus|called the watchman], and off they ran."
            ),
            (
                "{C} was the fastest of all. [Soon {he} was far ahead.|Nobody was near {him}.] [The {obj} was as good"
                " as {his}.|{He} could see the end already.]"
            ),
            (
                "Then {he} heard a cry. {F} the {fkind} had fallen {where2} and could not get up. {C} [stopped|looked"
                " back]."
            ),
            (
                "[\"The race can wait,\" {he} said.|\"A friend comes first,\" {he} thought.] {He} ran back, [helped {F}"
                " up|took {F} on {his} back], and slowly they went on together."
            ),
            (
                "They came in last, [arm in arm|side by side]. But [everyone cheered|nobody clapped for the winner as"
                " they clapped for these two]."
            ),
            "And in the end the {O} was given to {C}, because {he} had [shown the best heart|done more than win].",
        ],
        [
            ("What did the winner get?", "{a_O}", "The winner got {a_O}."),
            ("Who fell in the race?", "{F}", "{F} fell in the race."),
            ("Who helped {F}?", "{C}", "{C} helped {F}."),
            ("Where did everyone stand?", "{where}", "Everyone stood {where}."),
        ],
    ),
}


class Story:
    """`text`, what it is `about`, its `hero` and `friend`, and `questions`: (question, short answer, long answer)."""

    def __init__(self, text, about, hero, friend, questions):
        self.text, self.about, self.hero, self.friend, self.questions = text, about, hero, friend, questions


def slots_of(dice, hero, friend):
    place, place2 = dice.sample(PLACES, 2)
    colour, colour2 = dice.sample(COLOURS, 2)
    obj, obj2 = dice.sample(THINGS, 2)
    him = dice.pick(["him", "her"])
    s = {"there": "there", "they": "they", "C": hero.name, "kind": hero.kind, "a_kind": article(hero.kind), "he": hero.he, "him": hero.him,
         "his": hero.his, "himself": hero.him + "self", "home": hero.home, "home_to": "to sleep " + hero.home, "work": hero.work,
         "food": hero.food, "fear": hero.fear, "F": friend.name, "fkind": friend.kind, "fhe": friend.he, "fhim": friend.him, "fhis": friend.his,
         "fhome": friend.home, "ffood": friend.food, "place": place.name, "where": place.where, "place2": place2.name, "where2": place2.where,
         "colour": colour, "obj": obj, "O": colour + " " + obj, "a_O": article(colour + " " + obj), "obj2": obj2,
         "a_O2": article(colour2 + " " + obj2), "it_him": him, "its_his": "his" if him == "him" else "her",
         "S": dice.pick("Tilly Bo Nessa Rollo Juno Max Lotte Ivo".split()), "small": dice.pick("mole rat frog lamb kitten duckling".split()),
         "broken": dice.pick("town clock,old pump,market gate,school swing,mill wheel,wooden bridge".split(","))}
    for key in ("he", "his", "fhe"):
        s[capital(key)] = capital(s[key])
    s["A_O"] = capital(s["a_O"])
    return s


def tell(dice, hero=None, plot=None):
    """A story; the hero and the plot may be given. The friend is a good friend in half of them."""
    hero = hero or dice.pick(PEOPLE)
    friend = hero.friend if dice.chance(0.5) else dice.pick([p for p in PEOPLE if p is not hero])
    about, moral, beats, questions = PLOTS[plot or dice.pick(list(PLOTS))]
    slots = slots_of(dice, hero, friend)
    slots["moral"] = say(moral, dice, slots)
    parts = [say(dice.pick(OPENING), dice, slots)] + [say(beat, dice, slots) for beat in beats] + [say(dice.pick(ENDING), dice, slots)]
    breaks = {len(parts) // 3, 2 * len(parts) // 3} if dice.chance(0.5) else set()
    text = parts[0]
    for i, part in enumerate(parts[1:], 1):
        text += ("\n\n" if i in breaks else " ") + part
    asked = [tuple(say(t, dice, slots) for t in q) for q in questions]
    return Story(text, say(about, dice, slots), hero, friend, asked)
