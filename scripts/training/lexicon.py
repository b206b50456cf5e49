"""The project's own word lists for the programmatic pairs."""

from __future__ import annotations


def words(text: str) -> list[str]:
    return [x.strip() for x in text.replace("\n", " ").split(",") if x.strip()]


PEOPLE = words("""doctor, lawyer, actor, judge, baker, pilot, teacher, nurse, farmer, painter, manager, student,
singer, plumber, waiter, banker, poet, sailor, coach, tailor, librarian, engineer, chemist, dancer, mayor, clerk,
gardener, barber, butcher, tourist, professor, author, artist, athlete, scientist, president, secretary, senator,
driver, guard, cook, priest, soldier, director, investor, architect, dentist, editor, mechanic, carpenter,
guitarist, reporter, surgeon, consultant, analyst, astronaut, beekeeper, biologist, captain, cashier, chef,
colonel, composer, curator, detective, diplomat, electrician, fisherman, florist, historian, inspector, janitor,
jeweller, juror, landlord, magician, mathematician, midwife, miner, neighbour, novelist, optician, philosopher,
photographer, physicist, postman, psychologist, ranger, sculptor, shepherd, sheriff, spy, tenant, translator,
umpire, violinist, wrestler, customer, child, woman, man, girl, boy, manager, officer, worker, expert, stranger""")
PLURALS = {
    "child": "children",
    "woman": "women",
    "man": "men",
    "postman": "postmen",
    "fisherman": "fishermen",
    "spy": "spies",
}

# past, past participle, base
VERBS = [
    tuple(words(v.replace("/", ",")))
    for v in words("""saw/seen/see, helped/helped/help, praised/praised/praise, visited/visited/visit,
followed/followed/follow, thanked/thanked/thank, called/called/call, blamed/blamed/blame, hired/hired/hire,
warned/warned/warn, admired/admired/admire, ignored/ignored/ignore, met/met/meet, supported/supported/support,
advised/advised/advise, avoided/avoided/avoid, contacted/contacted/contact, encouraged/encouraged/encourage,
introduced/introduced/introduce, mentioned/mentioned/mention, recommended/recommended/recommend,
recognized/recognized/recognize, stopped/stopped/stop, believed/believed/believe, heard/heard/hear,
doubted/doubted/doubt, chose/chosen/choose, taught/taught/teach, paid/paid/pay, fought/fought/fight,
pushed/pushed/push, rescued/rescued/rescue, photographed/photographed/photograph, interviewed/interviewed/interview,
dismissed/dismissed/dismiss, trusted/trusted/trust, overtook/overtaken/overtake, painted/painted/paint,
greeted/greeted/greet, insulted/insulted/insult, cured/cured/cure, chased/chased/chase, beat/beaten/beat,
accused/accused/accuse, embraced/embraced/embrace, forgave/forgiven/forgive, guarded/guarded/guard,
kicked/kicked/kick, kissed/kissed/kiss, noticed/noticed/notice, questioned/questioned/question,
replaced/replaced/replace, served/served/serve, surprised/surprised/surprise, tricked/tricked/trick""")
]
INTRANSITIVE = words("""slept, danced, ran, arrived, waited, shouted, laughed, resigned, left, sang, cried, smiled, fell,
worked, apologized, performed, swam, disappeared, coughed, travelled, returned, complained, rested, retired, sneezed,
stayed, won, lost, celebrated, escaped, whispered, hesitated""")
NPS_VERBS = words(
    "heard, knew, believed, understood, remembered, forgot, expected, noticed, saw, feared, doubted, accepted, discovered, mentioned"
)
NPZ_VERBS = words(
    "ate, read, wrote, painted, sang, cooked, hid, left, moved, paid, studied, taught, visited, won, changed, drove, fought, stopped, hunted, called, presented, investigated, grew"
)
PREPOSITIONS = words(
    "near, behind, beside, next to, in front of, across from, with, by, opposite, in the room of, from the office of, below, above"
)
FACTIVE = words(
    "knew that, realized that, forgot that, noticed that, remembered that, regretted that, discovered that, learned that, was glad that, was sorry that, proved that, showed that, admitted that, saw that"
)
NONFACTIVE = words(
    "thought that, said that, believed that, hoped that, claimed that, suspected that, assumed that, doubted that, denied that, imagined that, feared that, guessed that, suggested that, wished that, dreamed that, pretended that, argued that, predicted that, was told that"
)
SURE_ADVERBS = words(
    "clearly, obviously, certainly, undoubtedly, without a doubt, of course, fortunately, sadly, surprisingly, in fact, unfortunately, luckily, indeed, finally"
)
UNSURE_ADVERBS = words(
    "probably, perhaps, maybe, possibly, supposedly, hopefully, allegedly, presumably, apparently, in theory, reportedly"
)
IF_WORDS = words(
    "if, unless, whether or not, in case, supposing that, provided that, as long as, assuming that"
)
FACT_WORDS = words(
    "because, since, although, though, while, after, before, even though, when, as soon as, despite the fact that, now that"
)
ADJECTIVES = words(
    "tall, old, young, angry, quiet, famous, rich, tired, clever, nervous, friendly, lazy, brave, careful, new, local, foreign, proud, busy, hungry, retired, honest, careless, popular, happy, lonely"
)

FIRST = words("""Anna, Omar, Lucía, Tom, Wei, Fatima, Piotr, Marta, James, Aisha, Kenji, Sofia, David, Ingrid, Carlos, Priya,
Hugo, Elena, Ravi, Noor, Jack, Emma, Luca, Mei, Ahmed, Clara, Ivan, Yuki, Peter, Grace, Samuel, Olga, Diego, Hannah, Viktor,
Leila, Oscar, Nina, Felix, Rosa, Simon, Irene, Mateo, Julia""")
LAST = words("""Novak, Silva, Tanaka, Okafor, Jensen, Moreau, Rossi, Haddad, Kowalska, Meyer, Smith, Chen, Patel, Larsen,
Ortiz, Dubois, Fischer, Ivanov, Kaya, Brown, Walker, Sato, Nguyen, Costa, Weber, Murphy, Lind, Popescu, Adeyemi, Hansen""")
CITIES = words("""Paris, Lisbon, Nairobi, Osaka, Toronto, Warsaw, Lima, Berlin, Cairo, Oslo, Madrid, Seoul, Dublin, Vienna,
Athens, Mumbai, Boston, Geneva, Havana, Jakarta, Kraków, Lagos, Milan, Prague, Quito, Riga, Sydney, Tunis, Utrecht, Zurich, Denver""")
COUNTRIES = words("""France, Portugal, Kenya, Japan, Canada, Poland, Peru, Germany, Egypt, Norway, Spain, Ireland, Austria,
Greece, India, Mexico, Brazil, Chile, Sweden, Turkey, Italy, Finland, China, Cuba, Morocco, Nepal, England, Scotland,
Australia, Russia, Iraq, Iran, Vietnam, Thailand, Belgium, Hungary, Argentina, Colombia, Ukraine, Denmark""")
NATIONALITIES = words("""French, Portuguese, Kenyan, Japanese, Canadian, Polish, Peruvian, German, Egyptian, Norwegian,
Spanish, Irish, Austrian, Greek, Indian, Mexican, Brazilian, Chilean, Swedish, Turkish, Italian, Finnish, Chinese, Cuban,
American, British, English, Scottish, Australian, Russian, Iraqi, Iranian, Vietnamese, Thai, Belgian, Hungarian, Dutch""")
COMPANIES = words("""Nordwind, Belloc Systems, Arkana, Tristar Foods, Kestrel Labs, Bluepeak, Ostrava Steel, Merin & Sons, Solvana,
Pinewood Energy, Quantor, Halden Bank, Ruby Air, Verdano, Lumen Optics, Gransol, Helix Motors, Corvid Games""")
MONTHS = words(
    "January, February, March, April, May, June, July, August, September, October, November, December"
)
DAYS = words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday")
NUMBER_WORDS = words(
    "zero, one, two, three, four, five, six, seven, eight, nine, ten, eleven, twelve, thirteen, fourteen, fifteen, sixteen, seventeen, eighteen, nineteen, twenty"
)
ORDINALS = words("first, second, third, fourth, fifth, sixth, seventh, eighth, ninth, tenth")

# words of one kind exclude each other; the key is their hypernym
KINDS = {
    "colour": words(
        "red, blue, green, yellow, black, white, orange, purple, brown, pink, gray, grey, silver, golden"
    ),
    "instrument": words(
        "guitar, piano, violin, flute, trumpet, drums, cello, harp, saxophone, clarinet, banjo, accordion, trombone, harmonica, ukulele"
    ),
    "drink": words(
        "coffee, tea, beer, wine, juice, milk, water, lemonade, whiskey, vodka, soda, champagne, cola"
    ),
    "room": words(
        "kitchen, bedroom, bathroom, garage, basement, attic, office, hallway, dining room, living room, closet"
    ),
    "material": words(
        "wood, plastic, glass, metal, steel, stone, leather, cotton, paper, silk, wool, rubber, brick, concrete, marble, iron, copper"
    ),
    "vegetable": words(
        "carrot, onion, cabbage, potato, tomato, spinach, broccoli, celery, cucumber, lettuce, pepper, garlic"
    ),
    "fruit": words(
        "apple, banana, orange, pear, cherry, grape, melon, peach, plum, mango, lemon, strawberry, pineapple"
    ),
    "animal": words(
        "dog, cat, horse, cow, sheep, goat, pig, rabbit, monkey, elephant, lion, tiger, bear, wolf, fox, snake, mouse"
    ),
    "bird": words("eagle, parrot, sparrow, duck, goose, owl, pigeon, swan, penguin, chicken, crow, seagull"),
    "vehicle": words(
        "car, truck, bus, bicycle, motorcycle, tractor, van, train, boat, ship, airplane, helicopter, taxi, tram, scooter, bike"
    ),
    "sport": words(
        "soccer, basketball, tennis, baseball, hockey, volleyball, golf, rugby, cricket, football, swimming, boxing"
    ),
    "planet": words("Mercury, Venus, Mars, Jupiter, Saturn, Uranus, Neptune, Earth"),
    "season": words("spring, summer, autumn, winter"),
    "tool": words("hammer, screwdriver, saw, drill, wrench, shovel, axe, rake, pliers"),
    "meal": words("breakfast, lunch, dinner, supper, brunch"),
    "flower": words("rose, tulip, daisy, lily, sunflower, orchid, daffodil"),
    "garment": words(
        "shirt, jacket, coat, dress, skirt, sweater, hat, scarf, jeans, shorts, vest, tie, suit, hoodie, blouse, apron"
    ),
    "furniture": words("chair, table, sofa, couch, bed, desk, bench, shelf, stool, wardrobe"),
    "person": words("man, woman, boy, girl"),
    "place": words(
        "beach, park, street, forest, mountain, river, lake, field, desert, restaurant, store, museum, church, school, hospital, library, stadium, playground, airport, garden, market"
    ),
    "weapon": words("gun, knife, sword, rifle, spear, pistol"),
    "relative": words(
        "father, mother, brother, sister, son, daughter, uncle, aunt, grandfather, grandmother"
    ),
    "day": DAYS,
    "month": MONTHS,
    "country": COUNTRIES,
    "nationality": NATIONALITIES,
}
ANTONYMS = [
    tuple(words(p.replace("/", ",")))
    for p in words("""big/small, large/small, tall/short, long/short, old/young, old/new, hot/cold, warm/cool,
happy/sad, fast/slow, rich/poor, early/late, empty/full, open/closed, clean/dirty, dry/wet, strong/weak, light/dark,
heavy/light, high/low, loud/quiet, awake/asleep, inside/outside, indoors/outdoors, up/down, above/below, over/under,
left/right, north/south, east/west, northern/southern, eastern/western, before/after, day/night, morning/evening,
first/last, major/minor, public/private, male/female, men/women, increase/decrease, increased/decreased, rise/fall,
rose/fell, won/lost, win/lose, accepted/rejected, allowed/forbidden, allowed/prohibited, legal/illegal, include/exclude,
included/excluded, possible/impossible, common/rare, always/never, often/rarely, usually/seldom, more/fewer, more/less,
most/least, many/few, all/none of the, both/neither of the, begin/end, began/ended, started/stopped, start/stop,
bought/sold, buy/sell, born/died, arrived/left, opened/closed, built/demolished, created/destroyed, same/different,
similar/different, upper/lower, maximum/minimum, largest/smallest, highest/lowest, longest/shortest, oldest/newest,
best/worst, better/worse, larger/smaller, higher/lower, longer/shorter, older/younger, greater/smaller, faster/slower,
earlier/later, positive/negative, success/failure, successful/unsuccessful, approved/rejected, agreed/refused, domestic/foreign,
temporary/permanent, alive/dead, safe/dangerous, standing/sitting, sitting/standing, running/sleeping, smiling/crying, walking/sitting,
entering/leaving, pushing/pulling, alone/together, near/far from, with/without, front/back, present/absent, winner/loser, husband/wife,
parent/child, teacher/student, king/queen, north/south, urban/rural, ancient/modern, formal/informal, natural/artificial,
required/optional, mandatory/voluntary, increased/reduced, gained/lost, love/hate, loved/hated, like/dislike, likes/dislikes,
import/export, widely/rarely, officially/unofficially, single/double, at least/at most, more than/less than, over/under,
beginning/end, appeared/disappeared, remembered/forgot, joined/left, succeeded/failed, praised/criticized, defeated/lost to""")
]
SYNONYMS = [
    tuple(words(p.replace("/", ",")))
    for p in words("""big/large, small/little, couch/sofa, kid/child, kids/children, street/road, begin/start, began/started,
buy/purchase, bought/purchased, fast/quick, happy/glad, angry/mad, car/automobile, bike/bicycle, movie/film, photo/picture,
near/close to, rock/stone, shop/store, sick/ill, talk/speak, talking/speaking, whole/entire, woods/forest, jacket/coat, quickly/rapidly,
often/frequently, rarely/seldom, help/assist, helped/assisted, get/obtain, choose/select, chose/selected, ended/finished, largest/biggest,
usually/normally, almost/nearly, about/approximately, around/approximately, also/additionally, located/situated, commonly/often, numerous/many,
received/got, required/needed, requires/needs, located in/situated in, known as/called, such as/like, because/since,
however/but, films/movies, maximum/highest, United States/US, created/made, began/commenced, doctor/physician, lawyer/attorney,
jumping/leaping, walking/strolling, running/jogging, infant/baby, guy/man, gentleman/man, lady/woman, shouting/yelling, looking at/watching,
near/next to, beside/next to, autumn/fall, airplane/plane, cap/hat, trousers/pants, sidewalk/pavement, ocean/sea, grin/smile, gift/present""")
]
QUANTIFIER_SWAPS = [
    tuple(words(p.replace("/", ",")))
    for p in words("""all/no, every/no, some/all, some/no, many/few, most/few, several/no, each/only one,
both/only one of the, many/all, most/all, some/most, usually/never, often/never, can/cannot, may/must, may not/may, only/not only, sometimes/always""")
]

# modifier adds a restriction: "[noun] [modifier]" is a kind of "[noun]"
NOUN_TREES = {  # noun (plural): narrower plurals
    "animals": words("dogs, cats, horses, rabbits, wolves, cows, elephants"),
    "dogs": words("poodles, beagles, greyhounds, puppies"),
    "birds": words("parrots, eagles, sparrows, owls, penguins"),
    "vehicles": words("cars, trucks, buses, motorcycles, vans"),
    "cars": words("taxis, convertibles, sports cars"),
    "fruits": words("apples, pears, bananas, cherries"),
    "vegetables": words("carrots, onions, potatoes, cucumbers"),
    "flowers": words("roses, tulips, lilies, orchids"),
    "instruments": words("violins, guitars, flutes, pianos"),
    "tools": words("hammers, saws, drills, wrenches"),
    "books": words("novels, dictionaries, biographies, cookbooks"),
    "people": words("children, women, teachers, tourists, doctors"),
    "students": words("law students, first-year students, exchange students"),
    "athletes": words("swimmers, runners, boxers, cyclists"),
    "workers": words("nurses, plumbers, carpenters, miners"),
    "drinks": words("juices, beers, wines, sodas"),
    "clothes": words("shirts, coats, dresses, scarves"),
    "buildings": words("houses, churches, schools, towers"),
    "documents": words("contracts, letters, invoices, passports"),
    "machines": words("printers, dishwashers, computers, tractors"),
    "musicians": words("pianists, drummers, violinists, cellists"),
    "trees": words("oaks, birches, pines, maples"),
    "insects": words("bees, ants, butterflies, mosquitoes"),
    "toys": words("dolls, puzzles, kites, toy trains"),
}
VERB_TREES = {  # plural past verb phrase: narrower ones
    "moved": words("ran, crawled, walked, jumped"),
    "made a noise": words("shouted, sang loudly, whistled"),
    "travelled": words("travelled by train, travelled to Rome, flew to Peru"),
    "ate": words("ate soup, ate quickly, ate an apple, dined outside"),
    "left": words("left early, left in a hurry, left before noon"),
    "worked": words("worked at night, worked in a factory, worked hard"),
    "danced": words("waltzed, danced on the table, danced all night"),
    "slept": words("slept well, slept in the garden, slept for ten hours"),
    "bought food": words("bought bread, bought apples, bought rice and beans"),
    "played a game": words("played chess, played cards, played poker"),
    "spoke": words("whispered, spoke softly, spoke Italian"),
    "got hurt": words("broke a leg, got badly hurt, got hurt in the park"),
    "owned a pet": words("owned a cat, owned a parrot, owned two dogs"),
    "drank": words("drank tea, drank milk at night, drank quickly"),
    "cooked": words("cooked fish, cooked outdoors, fried eggs"),
    "arrived": words("arrived late, arrived by bus, arrived with friends"),
    "read": words("read a novel, read in bed, read the news"),
}
RESTRICTIONS = words(
    "from Spain, with red hair, in the garden, who live abroad, near the station, under thirty, that came yesterday, from the north, in the city, who spoke first, without tickets, on the second floor"
)
