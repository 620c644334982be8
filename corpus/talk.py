# SPDX-License-Identifier: Apache-2.0
"""Conversations: about the village, about stories, with tools, records as JSON, and words said again. A conversation is a dict as in chat files: "messages",
and "tools" where there are some."""
import json

from grammar import capital, say
from story import PLOTS, tell
from world import BY_NAME, COLOURS, FRUIT, NUMBERS, PEOPLE, PLACES, STRANGE_NAMES, THINGS, WEATHER, article

STARTS = "b d f g h j k l m n p r s t v w z br cl dr fl gr kn pl qu sh st th tr x y".split()
VOWELS = "a e i o u ai ee oo".split()
ENDS = "b ck d ff k l ll m n nd p r rd rn s sk t x z th ax ius a o ia".split()
SYSTEM = "[You are the voice of Alderbrook.|You answer questions about Alderbrook.|You are a friendly storyteller.|You are a helpful assistant.]"


def tool_lines(tools):
    """How a system message offers them."""
    told = [t["function"] for t in tools]
    return ["Tools:"] * bool(told) + [f"{f['name']}({', '.join(f['parameters']['properties'])}): {f['description']}" for f in told]


def markup(conversation):
    """What chat.jinja makes of a conversation."""
    messages, tools, out = conversation["messages"], conversation.get("tools"), []
    first = messages[0]["role"] == "system"
    if first or tools:
        lines = [messages[0]["content"]] if first else []
        lines += tool_lines(tools or [])
        out.append("<|im_start|>system\n" + "\n".join(lines) + "<|im_end|>\n")
    for m in messages[first:]:
        text = m.get("content") or ""
        for call in m.get("tool_calls", []):
            f = call["function"]
            text += f'<tool_call>{{"name": "{f["name"]}", "arguments": {json.dumps(f["arguments"])}}}</tool_call>'
        out.append(f"<|im_start|>{m['role']}\n{text}<|im_end|>\n")
    return "".join(out)


def turns(*texts):
    """User and assistant by turns."""
    return [{"role": ("user", "assistant")[i % 2], "content": t} for i, t in enumerate(texts)]


def several(dice, most, make):
    """A conversation of 1 to `most` questions and answers."""
    return turns(*(t for _ in range(1 + dice.below(most)) for t in make(dice)))


# ---- the village ----

def about(p):
    """What sentences about a person are made of, and by what is asked: (questions, answers), each a choice."""
    s = {"C": p.name, "kind": p.kind, "a_kind": article(p.kind), "he": p.he, "He": capital(p.he), "his": p.his, "home": p.home, "work": p.work,
         "the_home": p.home.split(" ", 1)[1], "food": p.food, "fear": p.fear, "owns": p.owns, "F": p.friend_name, "fkind": p.friend.kind,
         "fhome": p.friend.home, "His_friend": f"{capital(p.his)} best friend is {p.friend_name}."}
    return s, {
        "home": ("Where does {C} live?|Where is {C}'s home?|Where can I find {C}?|Do you know where {C} lives?",
                 "{C} lives {home}.|{C} the {kind} lives {home}."),
        "kind": ("What is {C}?|What kind of creature is {C}?|Is {C} an animal?", "{C} is {a_kind}.|{C} is {a_kind} who lives {home}."),
        "who_home": ("Who lives {home}?|Whose home is {the_home}?", "{C} lives {home}.|{C} the {kind} lives {home}."),
        "work": ("What work does {C} do?|What is {C}'s work?|What does {C} do all day?", "{C} is the {work} of Alderbrook.|{C} is the {work}."),
        "who_work": ("Who is the {work}?|Who is the {work} of Alderbrook?", "The {work} is {C}.|{C} the {kind} is the {work}."),
        "food": ("What does {C} like to eat?|What is {C}'s favourite food?|What food does {C} love?", "{C} likes {food} best of all.|{C} loves {food}."),
        "fear": ("What is {C} afraid of?|What does {C} fear?", "{C} is afraid of {fear}.|{He} is afraid of {fear}."),
        "owns": ("What does {C} own?|What belongs to {C}?", "{C} owns {owns}.|{C} has {owns}."),
        "friend": ("Who is {C}'s best friend?|Who is a friend of {C}?|Who is {C}'s friend?", "{C}'s best friend is {F} the {fkind}.|{F} is {C}'s best friend."),
        "who": ("Who is {C}?|Tell me about {C}.|What do you know about {C}?",
         "{C} is {a_kind} who lives {home}. {He} is the {work} and likes {food}. {His_friend}"),
        "friend_home": ("Where does {C}'s best friend live?", "{C}'s best friend is {F}, who lives {fhome}."),
    }


def choice(options, dice, slots):
    return say("[" + options + "]", dice, slots)


def person_question(dice, person=None):
    p = person or dice.pick(PEOPLE)
    slots, questions = about(p)
    q, a = dice.pick(list(questions.values()))
    return choice(q, dice, slots), choice(a, dice, slots)


def place_question(dice):
    p = dice.pick(PLACES)
    s = {"name": p.name, "Name": capital(p.name), "way": p.way, "known": p.known}
    q, a = dice.pick([("Where is {name}?|How do I get to {name}?", "{Name} is {way}.|You find {name} {way}."),
                      ("What is {name} known for?|What can I see at {name}?", "{Name} is known for {known}.")])
    return choice(q, dice, s), choice(a, dice, s)


def strange_name(dice):
    """A name that nobody has."""
    name = ""
    while not name or name in BY_NAME:
        name = capital("".join(dice.pick(STARTS) + dice.pick(VOWELS) for _ in range(1 + dice.below(2))) + dice.pick(ENDS))
    return name


def unknown_question(dice):
    name = dice.pick(STRANGE_NAMES) if dice.chance(0.3) else strange_name(dice)
    q = choice("Where does {n} live?|Who is {n}?|What does {n} like to eat?|What is {n} afraid of?", dice, {"n": name})
    return q, choice("I do not know anyone named {n}.|I have never heard of {n}.|There is nobody named {n} in Alderbrook.", dice, {"n": name})


def yes_no_question(dice):
    """Whether a fact is so. The answer says the fact before it judges: a small model compares what it has said, not what it would say."""
    p = dice.pick(PEOPLE)
    other = p if dice.chance(0.5) else dice.pick([x for x in PEOPLE if x not in (p, p.friend)])
    asked, fact = dice.pick([
        ("Does {C} live {o.home}?", "{C} lives {p.home}"), ("Is {C} {o_kind}?", "{C} is {p_kind}"), ("Is {C} the {o.work}?", "{C} is the {p.work}"),
        ("Does {C} like {o.food}?", "{C} likes {p.food}"), ("Is {C} afraid of {o.fear}?", "{C} is afraid of {p.fear}"),
        ("Does {C} own {o.owns}?", "{C} owns {p.owns}"), ("Is {o.friend_name} {C}'s best friend?", "{C}'s best friend is {p.friend_name}")])
    slots = {"C": p.name, "p": p, "o": other, "p_kind": article(p.kind), "o_kind": article(other.kind), "yes": "yes" if p is other else "no"}
    return say(asked, dice, slots), say(fact + ", so [{yes}|the answer is {yes}].", dice, slots)


def sum_question(dice):
    a, b = dice.below(7), dice.below(6)
    return (
        choice(
            "What is {a} plus {b}?|How much is {a} plus {b}?|If I have {a} apples and get {b} more, how many do I have?",
            dice,
            {"a": NUMBERS[a], "b": NUMBERS[b]},
        ),
        choice("{a} plus {b} is {c}.", dice, {"a": capital(NUMBERS[a]), "b": NUMBERS[b], "c": NUMBERS[a + b]}),
    )


def small_talk(dice):
    return tuple(
        say(t, dice, {})
        for t in dice.pick(
            [
                (
                    "[Hello|Hi|Hey|Hello there|Hi there|Good day|Good morning|Good evening][!|.|]",
                    (
                        "[Hello! How can I help you?|Good day! Would you like to hear a story?|Hello! Ask me about the"
                        " village of Alderbrook.]"
                    ),
                ),
                (
                    "[How are you?|How are you today?|How do you do?]",
                    "[I am well, thank you. And you?|Very well, thank you. Would you like a story?]",
                ),
                (
                    "[Who are you?|What are you?|What is your name?]",
                    (
                        "[I am a small language model. I tell stories about the village of Alderbrook.|I am a very"
                        " small model, and Alderbrook is my world.]"
                    ),
                ),
                (
                    "[What can you do?|How can you help me?|Can you help me?|What do you know?|Help!]",
                    "I can tell stories, answer questions about Alderbrook, use tools and write JSON.",
                ),
                (
                    "[Thank you!|Thanks!|Thank you very much.|That was nice.|I liked that.]",
                    "[You are welcome!|You are welcome. Come again soon!]",
                ),
                (
                    "[Goodbye!|Bye!|Good night!|See you tomorrow.]",
                    "[Goodbye! Come back soon.|Goodbye, and sleep well!]",
                ),
                (
                    "[What is Alderbrook?|Where is Alderbrook?|Tell me about Alderbrook.]",
                    (
                        "Alderbrook is a small village between the river and the whispering wood. [Twenty friends live"
                        " there.|Animals and people live there together.]"
                    ),
                ),
            ]
        )
    )


def typed(dice, text):
    """As people type: at times in small letters, at times without a mark at the end."""
    if dice.chance(0.1):
        text = text.lower()
    return text.rstrip("?.!") if dice.chance(0.1) else text


def question(dice):
    kind = dice.below(20)
    if kind < 2:
        return unknown_question(dice)  # a name is repeated letter by letter
    q, a = (person_question(dice) if kind < 9 else place_question(dice) if kind < 11 else yes_no_question(dice) if kind < 16 else
            sum_question(dice) if kind < 17 else small_talk(dice))
    return typed(dice, q), a


def village_chat(dice):
    messages = several(dice, 4, question)
    if dice.chance(0.25):
        messages.insert(0, {"role": "system", "content": say(SYSTEM, dice, {})})
    return {"messages": messages}


# ---- stories ----

def story_request(dice):
    """A wish, and the story that fulfils it."""
    hero, plot = dice.pick(PEOPLE), dice.pick(list(PLOTS))
    s = tell(dice, hero, plot)
    slots = {"C": hero.name, "a_kind": article(hero.kind), "about": s.about, "F": s.friend.name}
    wish = dice.pick(["{C}", "{C} the " + hero.kind, "{a_kind}", "{about}", "{C} and {about}", "{C} and {F}", "{a_kind} and {about}", ""])
    ask = "[Tell me a story|Please tell me a story|Write a story|Can you tell me a story|I would like a story|A story, please,]"
    text = say(ask + (" about " + wish if wish else ""), dice, slots)
    return typed(dice, text.rstrip(",") + ("?" if text.startswith("Can") else ".")), s


def story_chat(dice):
    """A story, and what is said before and after it: questions about it, and about anybody else."""
    messages = turns(*question(dice)) if dice.chance(0.2) else []
    wish, s = story_request(dice)
    messages += turns(wish, s.text)
    asked = dice.sample(s.questions, len(s.questions))
    for _ in range(dice.below(4)):
        if dice.chance(0.5):
            q, short, long = asked.pop()
            messages += turns(q, long if dice.chance(0.7) else capital(short) + ".")
        else:
            messages += turns(*(person_question(dice, dice.pick([s.hero, s.friend])) if dice.chance(0.3) else question(dice)))
    return {"messages": messages}


def reading_chat(dice):
    """A story is given, and questions about it."""
    s = tell(dice)
    asked = dice.sample(s.questions, 1 + dice.below(3))
    first = asked[0][0]
    ask = say("[Read this story: {story}\n\n{q}|{story}\n\n{q}|Here is a story.\n\n{story}\n\nQuestion: {q}]", dice, {"story": s.text, "q": first})
    messages = turns(ask, asked[0][2])
    for q, _, long in asked[1:]:
        messages += turns(q, long)
    return {"messages": messages}


def story_with_questions(dice):
    """The same as plain text."""
    s = tell(dice)
    lines = [s.text, ""]
    for q, short, long in dice.sample(s.questions, 1 + dice.below(3)):
        lines += ["Question: " + q, "Answer: " + (long if dice.chance(0.5) else capital(short))]
    return "\n".join(lines)


# ---- tools ----

def tool(called, description, **parameters):
    return {"type": "function", "function": {"name": called, "description": description,
                                             "parameters": {"type": "object", "properties": {k: {"type": v} for k, v in parameters.items()},
                                                            "required": list(parameters)}}}


TOOLS = {"get_weather": tool("get_weather", "the weather at a place", place="string"),
         "find_person": tool("find_person", "where somebody is now", name="string"),
         "set_timer": tool("set_timer", "rings after some minutes", minutes="integer"),
         "send_letter": tool("send_letter", "sends a letter", to="string", text="string"),
         "buy": tool("buy", "buys things at the market", item="string", count="integer"),
         "play_song": tool("play_song", "plays a song", title="string"),
         "add": tool("add", "the sum of two numbers", a="integer", b="integer")}

SONGS = "The Miller's Song;Under the Bridge;Snow at Night;The Merry Goose;Row, Otter, Row;The Long Way Home".split(";")
LETTERS = "Come to tea;Happy birthday;I miss you;Dinner is ready;See you tomorrow;The bridge is mended;Thank you for the gift".split(";")


def use_tool(dice, name):
    """What the user asks, the arguments, what the tool says, and the answer."""
    s = {
        "who": dice.pick(PEOPLE).name,
        "place": dice.pick(PLACES).name,
        "where": dice.pick(PLACES).where,
        "n": 2 + dice.below(11),
        "item": dice.pick(FRUIT),
        "song": dice.pick(SONGS),
        "letter": dice.pick(LETTERS),
        "weather": dice.pick(WEATHER),
        "degrees": dice.below(30),
        "a": dice.below(90),
        "b": dice.below(90),
    }
    s["word"], s["sum"], s["price"] = NUMBERS[s["n"]], s["a"] + s["b"], 2 * s["n"]
    if name == "get_weather":
        return (
            "[What is the weather like at {place}?|How is the weather at {place} today?|Is it raining at {place}?|Do I need a coat at {place}?]",
            {"place": s["place"]},
            {"weather": s["weather"], "degrees": s["degrees"]},
            "[It is {weather} at {place}, with {degrees} degrees.|At {place} it is {weather}, {degrees} degrees.]",
            s,
        )
    if name == "find_person":
        return ("[Where is {who} now?|Can you find {who}?|Find {who} for me.|I am looking for {who}.]", {"name": s["who"]}, {"where": s["where"]},
                "[{who} is {where} now.|You find {who} {where}.]", s)
    if name == "set_timer":
        return (
            "[Set a timer for {word} minutes.|Wake me in {n} minutes.|Please ring in {n} minutes.|Call me in {word} minutes.]",
            {"minutes": s["n"]},
            {"ok": True},
            "[The timer is set: {n} minutes.|I will ring in {n} minutes.]",
            s,
        )
    if name == "send_letter":
        return ("[Write to {who}: {letter}.|Send a letter to {who}: {letter}.|Tell {who} this: {letter}.]", {"to": s["who"], "text": s["letter"]}, {"ok": True},
                "[Your letter to {who} is on its way.|I sent your letter to {who}.]", s)
    if name == "buy":
        return ("[Buy {word} {item}.|I need {word} {item}.|Please get {n} {item} at the market.|Get me {n} {item}.]", {"item": s["item"], "count": s["n"]},
                {"coins": s["price"]}, "[I bought {n} {item} for {price} coins.|Here are your {n} {item}. They cost {price} coins.]", s)
    if name == "play_song":
        return (
            "[Play {song}.|I want to hear {song}.|Please play the song {song}.]",
            {"title": s["song"]},
            {"ok": True},
            "[Now playing: {song}.|Here is {song}.]",
            s,
        )
    return (
        "[What is {a} plus {b}?|Add {a} and {b}.|How much is {a} plus {b}?]",
        {"a": s["a"], "b": s["b"]},
        {"sum": s["sum"]},
        "[{a} plus {b} is {sum}.|It is {sum}.]",
        s,
    )


def tool_chat(dice):
    names = dice.sample(TOOLS, 1 + dice.below(4))
    messages = [{"role": "system", "content": say(SYSTEM, dice, {})}] if dice.chance(0.3) else []
    for _ in range(1 + dice.below(2)):
        if dice.chance(0.15):  # nothing that a tool is needed for
            messages += turns(*person_question(dice))
            continue
        name = dice.pick(names)
        ask, arguments, result, answer, s = use_tool(dice, name)
        messages.append({"role": "user", "content": say(ask, dice, s)})
        messages.append({"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": {"name": name, "arguments": arguments}}]})
        messages.append({"role": "tool", "content": json.dumps(result)})
        messages.append({"role": "assistant", "content": say(answer, dice, s)})
    return {"messages": messages, "tools": [TOOLS[n] for n in names]}


# ---- JSON ----

def card(p):
    return {"name": p.name, "kind": p.kind, "home": p.home.split(" ", 1)[1], "work": p.work, "food": p.food, "friend": p.friend_name}


def basket(dice):
    items = [{"item": f, "count": 1 + dice.below(11)} for f in dice.sample(FRUIT, 1 + dice.below(3))]
    spoken = [f"{NUMBERS[i['count']]} {i['item']}" for i in items]
    return " and ".join([", ".join(spoken[:-1])] * (len(spoken) > 1) + spoken[-1:]), {"items": items}


JSON_ASKS = "[As JSON: {text}.|Write this as JSON: {text}.]"


def card_asked(name, kind, home, work, food):
    """A sentence about somebody made up of others, and its record."""
    text = f"{name} is {article(kind.kind)} who lives {home.home}. {name} is the {work.work} and likes {food.food}"
    return text, {"name": name, "kind": kind.kind, "home": home.home.split(" ", 1)[1], "work": work.work, "food": food.food}


def find_asked(dice):
    """A sentence about something found, and its record."""
    colour, obj, place, who = dice.pick(COLOURS), dice.pick(THINGS), dice.pick(PLACES), dice.pick(PEOPLE)
    return (f"{who.name} found {article(colour + ' ' + obj)} {place.where}", {"who": who.name, "what": obj, "colour": colour, "place": place.name})


def json_chat(dice):
    kind = dice.below(3)
    if kind == 0:
        p = dice.pick(PEOPLE)
        ask = say("[Write {C} as JSON.|Give me {C} as JSON.|Describe {C} in JSON.|JSON for {C}, please.]", dice, {"C": p.name})
        value = card(p)
    elif kind == 1:
        spoken, value = basket(dice)
        ask = say("[Make a shopping list as JSON: {s}.|I need {s}. Write it as JSON.|Turn this into JSON: {s}.]", dice, {"s": spoken})
    else:
        text, value = find_asked(dice)
        ask = say(JSON_ASKS, dice, {"text": text})
    return {"messages": turns(ask, json.dumps(value))}


def json_text(dice):
    """Records without a conversation."""
    if dice.chance(0.5):
        return "\n".join(json.dumps(card(p)) for p in dice.sample(PEOPLE, 1 + dice.below(4)))
    return "\n".join(json.dumps(basket(dice)[1]) for _ in range(1 + dice.below(4)))


# ---- repeating ----

def anything(dice):
    """A word or a number; most are found nowhere else."""
    kind = dice.below(4)
    if kind == 0:
        return str(dice.below(10 ** (1 + dice.below(5))))
    if kind == 1:
        return strange_name(dice)
    return dice.pick(dice.pick((THINGS, COLOURS, FRUIT))) if kind == 2 else dice.pick(PEOPLE).name


def echo(dice):
    words = dice.pick((" ", ", ")).join(anything(dice) for _ in range(1 + dice.below(1 + dice.below(8))))
    return say("[Say|Repeat|Say after me|Repeat after me|Please repeat]: {w}", dice, {"w": words}), words


def comparison(dice):
    a, b = anything(dice), anything(dice)
    if dice.chance(0.5):
        b = a
    elif a.isdigit():  # a figure is another
        at = dice.below(len(a))
        b = a[:at] + str((int(a[at]) + 1 + dice.below(9)) % 10) + a[at + 1:]
    s = {"a": a, "b": b, "so": "yes" if a == b else "no"}
    return say("[Are {a} and {b} the same?|Is {a} the same as {b}?]", dice, s), say("{a} and {b}, so [{so}|the answer is {so}].", dice, s)


def echo_chat(dice):
    """What nobody can know and everybody can say again. It teaches the model to copy, which tools, names and JSON need, and to tell what is the same."""
    return {"messages": several(dice, 4, lambda dice: echo(dice) if dice.chance(0.65) else comparison(dice))}


def judge_chat(dice):
    """Whether things are so, and whether words are the same."""
    return {"messages": several(dice, 5, lambda dice: yes_no_question(dice) if dice.chance(0.8) else comparison(dice))}


CHATS = (story_chat, reading_chat, village_chat, tool_chat, json_chat, echo_chat)
