// SPDX-License-Identifier: Apache-2.0
/* public_text.c: see public_text.h. Plain sentences: description, instruction, dialogue, numbers, code. */
#include "learn/public_text.h"

#include <string.h>

static const char TEXT[] =
    "Bread needs flour, water, salt and time. Mix the flour and the water first and let them rest for half an hour; "
    "then "
    "add the salt, and a little yeast that was stirred into warm water. Knead the dough until it is smooth, cover it "
    "with "
    "a cloth, and leave it in a warm place until it is twice as large. Bake it for forty minutes in a hot oven.\n\n"
    "The river comes from the mountains in the east. In spring, when the snow melts, it carries stones and branches "
    "down "
    "into the valley, and the old bridge is closed for some days. In summer children swim below the mill, where the "
    "water "
    "is deep and slow. Nobody remembers who built the bridge, but its five arches have stood for a very long time.\n\n"
    "\"Do you have a minute?\" she asked.\n\"Of course,\" he said. \"What is the matter?\"\n\"The printer does not "
    "work "
    "again, and the report must be ready by noon.\"\n\"Then send it to me. I will print it here, and bring it "
    "down.\"\n\n"
    "To compute the mean of some numbers, add them and divide the sum by how many there are. The mean of 3, 5 and 10 "
    "is 18 "
    "divided by 3, which is 6. The median is the number in the middle when they stand in order: 5.\n\n"
    "A train leaves at 9:15 and arrives at 11:40. The journey takes two hours and twenty-five minutes. On Sundays it "
    "leaves an hour later, and on holidays it does not run at all.\n\n"
    "def largest(numbers):\n    best = numbers[0]\n    for n in numbers:\n        if n > best:\n            best = n\n "
    "   "
    "return best\n\n"
    "Water boils at one hundred degrees at the level of the sea. Higher up the air is thinner, and water boils sooner: "
    "on a "
    "high mountain an egg must be cooked for longer. Salt in the water makes hardly any difference.\n\n"
    "Dear Sir or Madam,\nI am writing about the bicycle that I ordered on the third of May. It came today, but one of "
    "the "
    "wheels is bent. Please tell me whether I should send the whole bicycle back, or the wheel alone.\nYours "
    "sincerely\n\n"
    "The library is open from Monday to Friday between ten and six, and on Saturday until one. Books may be kept for "
    "four "
    "weeks; who brings them back late pays a small sum for every day. Newspapers and maps are for reading in the "
    "hall.\n\n"
    "Cats sleep for more than half of the day. They see well when there is little light, and they hear sounds that are "
    "far "
    "too high for people. A cat that is afraid makes itself large; one that is content closes its eyes slowly.\n\n"
    "How do I reset my password? Open the page for signing in, choose \"forgotten\", and enter the address that you "
    "gave "
    "us. You will get a message with a link, which is good for one hour. If none comes, look among the unwanted "
    "mail.\n\n"
    "First they walked along the wall, then through the gate and up the narrow street. It had begun to rain. At the "
    "top of "
    "the hill there was a bench under a chestnut tree, and there they waited until the sky was clear and the roofs "
    "were "
    "shining. Far away a bell rang four times.\n\n"
    "Ten apples cost four coins; how many coins do twenty-five apples cost? One apple costs four tenths of a coin, so "
    "that "
    "twenty-five of them cost ten coins.\n\n"
    "The moon has no light of its own. What we see is the light of the sun on the side that is turned to it. When the "
    "earth "
    "stands between the two, the moon grows dark for an hour or two, and often red.\n\n"
    "Please keep this door closed. Wash your hands before you enter, and leave bags and coats in the room on the left. "
    "If "
    "you feel unwell, tell the person at the desk. Visits end at seven in the evening.\n\n"
    "{\"name\": \"lamp\", \"price\": 24.5, \"colours\": [\"white\", \"black\"], \"in_stock\": true}\n\n"
    "My grandmother kept bees behind the house. She wore no gloves, and she moved as if there were no hurry in the "
    "world. In "
    "August she cut the combs from their frames, and the whole kitchen smelled of wax and honey until the autumn "
    "came.\n";

weft_status weft__teach_public_text(const weft__tok *tok, weft__teach_texts *probe, weft__teach_texts *publics,
                                    weft_error *err)
{
    weft__tok_ids ids = {0};
    weft_status st = weft__tok_encode(tok, TEXT, strlen(TEXT), 0, &ids, err);
    const int32_t n = (int32_t)ids.n, half = n / 2;
    int ok = st || weft__teach_texts_add(probe, ids.data, half, NULL, 0, -1);
    for (int32_t at = half; ok && !st && at + WEFT__TEACH_PUBLIC <= n; at += WEFT__TEACH_PUBLIC)
        ok = weft__teach_texts_add(publics, ids.data + at, 1, ids.data + at + 1, WEFT__TEACH_PUBLIC - 1, -1);
    weft__tok_ids_free(&ids);
    return st ? st : ok ? WEFT_OK : weft_fail(err, WEFT_NO_MEMORY, "no memory to learn");
}
