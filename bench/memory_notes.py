# SPDX-License-Identifier: Apache-2.0
"""Notes, each with a question that has none of its words (but those that stand everywhere), and words of which a right answer has one, where there
are such that an answer has not by chance: what memories are found by meaning alone (bench/recall, bench/memory)."""
import re

PERSON = """\
Peanuts give me a rash.|Which foods must never be in what I eat?|peanut
My daughter is called Lena.|What name did we choose for our child?|Lena
I moved to Vienna last spring.|In which city is my home now?|Vienna
The spare key hangs behind the green door.|How do I enter if I lock myself out?|green
I never drink coffee after lunch.|May you offer me an espresso tonight?|
My dentist is Dr. Hofer.|Who looks after my teeth?|Hofer
The car needs new brakes.|What has to be repaired on my vehicle?|brake
I work as a nurse on night shifts.|How do I earn my living?|nurse
Our wedding was in June.|When did I marry?|June
My bicycle was stolen in March.|What did thieves take from me?|bicycle/bike
I prefer tea with honey.|How should a hot beverage be sweetened?|honey
My brother lives in Lisbon.|Where could I visit a sibling abroad?|Lisbon
The rent is due on the first.|When must the landlord be paid?|
I am afraid of spiders.|Which animals frighten me?|spider
My laptop has sixteen gigabytes of memory.|How much RAM is in the computer?|sixteen/16
I take the bus at seven.|What transport brings me to the office, and at what hour?|bus
Our cat sleeps on the radiator.|Which pet is in the house?|cat
I play the cello on Sundays.|What instrument is my hobby?|cello
The doctor told me to avoid salt.|What advice about seasoning was given by the physician?|salt
My passport expires in October.|Until which month are travel documents valid?|October
I read crime novels before sleep.|Which books please me in bed?|crime
The garden gets water every second evening.|How often are the plants to be sprinkled?|second/other
I am learning Finnish.|Which foreign language am I studying?|Finnish
My mother turns seventy in May.|Whose birthday comes soon, and how old will she be?|mother
The flight to Rome leaves at noon.|At what time does the plane take off?|noon
I wear glasses for driving.|What do my eyes need behind the wheel?|glasses
We keep chickens.|Where do the eggs come from?|chicken
My favourite colour is turquoise.|In which shade should the walls be painted?|turquoise
The wifi password is under the router.|How do guests get on the internet?|router/password
I run ten kilometres on Saturdays.|How far do I jog at the weekend?|ten/10
My boss is on holiday until Monday.|When will the manager be back?|Monday
The oven is too hot by twenty degrees.|What must be known before baking a cake?|hot/twenty/20
I sold the boat.|Do I still own a ship?|
Our neighbours have twins.|How many babies are next door?|two/twins/2
The library book is overdue.|What should have been returned already?|book
I get seasick.|Is a cruise a good idea for me?|
My shoe size is forty-two.|What number fits my feet?|forty-two/42
The lawyer wants the contract signed.|Which paper is waiting for my signature?|contract
I donate blood twice a year.|How do I help the hospital?|blood
The heating broke in the bathroom.|Why is it cold when I shower?|heating""".split("\n")
OFFICE = """\
The invoice from the printer is unpaid.|Which bill is still open?|invoice/printer
Our server room is in the basement.|Where do the machines stand?|basement
Anna reviews every patch before it lands.|Who checks changes to the source code?|Anna
We ship on the last Thursday of a month.|When does a release go out?|Thursday
The customer wants reports as spreadsheets.|In which format should results be delivered?|spreadsheet
Backups run at three in the morning.|At what hour are copies of the data made?|three/3
The intern starts next week.|Is a new colleague joining soon?|
Meetings longer than an hour are forbidden.|How much time may a discussion take?|hour
The old logo must not be used.|What picture is banned from our letters?|logo
The budget for travel is spent.|Can somebody fly to a conference this year?|
Tom is colour blind.|Why should charts avoid red beside green for one person?|Tom
The lift is broken.|Do visitors have to climb stairs?|
Our office closes at six.|Until when can people get into the building?|six/6
The Japanese partners prefer email.|How are companies in Tokyo to be contacted?|mail
The test database holds no real names.|Is private information inside the sandbox?|
The contract ends in December.|When does the agreement run out?|December
Parking costs five euros a day.|What does leaving a vehicle here cost someone?|five/5
The projector needs an adapter.|What is missing for showing slides?|adapter
The canteen has no vegetarian dishes on Fridays.|When will someone without meat go hungry at lunch?|Friday
The printer is out of toner.|Why are pages blank?|toner
The warranty covers two years.|How long is a repair free?|two/2
The key account is a bank in Zurich.|Which client matters most?|Zurich/bank
Our parser fails on tabs.|Which characters break reading the file?|tab
The manual was written by Maria.|Who is the author of this handbook?|Maria
The first floor smells of paint.|Where were walls decorated recently?|
Overtime is paid double.|What do workers earn for extra hours?|double
The mailing list has nine hundred members.|How many subscribers are there?|nine/900
We lost the tender to a Danish firm.|Which competitor won?|Danish
The fire drill is on Tuesday.|When will the alarm ring for practice?|Tuesday
The licence forbids resale.|May one sell it on?|
The phone system does not record calls.|Are conversations taped?|
The sensor drifts when it is warm.|What does heat do to measurements?|drift
Deliveries go to the back door.|Where should a courier ring?|back
Lars speaks Polish.|Who could translate for guests from Warsaw?|Lars
The coffee machine is cleaned daily.|How often is the espresso maker washed?|daily/day
The board meets in Geneva.|In which city do directors gather?|Geneva
Interns get no laptop.|Which staff must bring a computer along?|intern
The prototype weighs four kilos.|How heavy is our first model?|four/4
The archive burned down in 1998.|What happened to old documents?|burn
The survey had thirty answers.|How many people responded?|thirty/30""".split("\n")
COMMON = set("""a am an and are as at be before by can come could did do does for from get give has have how i if in is it its me my must of on or our
should so still than that the them to was we what when where which while who whose why will with you""".split())


def read(lines):
    """(note, question, words)."""
    for line in lines:
        note, question, words = line.split("|")
        shared = set(re.findall(r"[a-z]+", note.lower())) & set(re.findall(r"[a-z]+", question.lower())) - COMMON
        if shared:
            raise SystemExit(f"{question} shares {shared} with {note}")
        yield note, question, words.split("/") if words else []
