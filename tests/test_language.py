"""Sentences and their spans, words, claims and refusals in twelve languages."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from importlib import resources

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anvil_local.language import (
    asks,
    base_code,
    content_words,
    count_negations,
    detect_language,
    has_address,
    is_assent,
    is_polar,
    is_simple,
    load_language,
    makes_claim,
    matches,
    split_sentences,
    words,
)

TABLES = tomllib.loads(resources.files("anvil_local").joinpath("language.toml").read_text(encoding="utf-8"))
CODES = sorted(TABLES)
ENGLISH = load_language("en")


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[span.start : span.end] for span in split_sentences(text, language)]


# Sentences

PIECES = st.sampled_from(
    [
        "The pump failed.", "Dr. Berg left.", "z.B. ", "1,5 %", "- ", "1. ", "2) ", "* ", "> ", "# ",
        "| a | b |", "```", "\n", "\r\n", "\n\n", "\t", " ", "\x00",
        "\x0b", "\u2028", "e\u0301", "\u202bשלום\u202c",
        "مرحبا.", "🙂", "👩‍🔬", "今日は晴れ。", "它开了！",
        "नमस्ते।", "?", "!", "...", "…", "(", ")", '"', "“", "”",
        "«", "ﬁ", "²", "ﹰ", "a)",
    ]
)  # fmt: skip
TEXTS = st.one_of(st.text(), st.lists(PIECES | st.text(max_size=4), max_size=14).map("".join))


@given(TEXTS, st.sampled_from([*CODES, "ru", "xx", "", "de-AT"]))
@example("1.\n2.\n3.", "en")
@example("1. 2. 3. x", "en")
@example("a) b) c", "en")
@example("\ud800 lone. Surrogate.", "en")
def test_spans_are_ordered_apart_in_range_and_stripped_and_no_word_is_outside(
    text: str, language: str
) -> None:
    spans = split_sentences(text, language)
    end = 0
    outside = []
    for span in spans:
        assert end <= span.start < span.end <= len(text)
        sentence = text[span.start : span.end]
        assert sentence == sentence.strip()
        assert any(character.isalnum() for character in sentence)
        outside.append(text[end : span.start])
        end = span.end
    outside.append(text[end:])
    for gap in outside:
        left = re.sub(r"\(?(?:\d{1,3}[.)]|[a-zA-Z]\))(?=\s)", "", gap)
        assert not any(character.isalnum() for character in left), (gap, text)


# Sentences as they must be cut; put together again with what stands between them.
WHOLE = {
    "en": ["Dr. Berg’s café opened in 1902.", "It closed at 5 p.m. on “bad” days!", "Did it reopen?", "Yes."],
    "es": ["La señora Núñez nació en 1950.", "¿Cuándo murió?", "¡Murió el 3 de mayo, a las 5 p. m.!",
           "El Sr. Gómez la conocía."],
    "de": ["Am 3. Oktober kam Dr. Müller z. B. nach Köln.", "Er sagte: „Es ist spät.“", "Dann ging er.",
           "Straße Nr. 5 ist 1,5 km lang."],
    "fr": ["L’été dernier, Léa a vendu 3,5 t de blé.", "« C’est peu », dit-il.", "Où est-il allé ?",
           "À Orléans !"],
    "it": ["Il sig. Rossi è nato nel 1950.", "Perché partì?", "Andò a Forlì.", "L’azienda vale 1,5 mln €."],
    "pt": ["A Sra. Conceição nasceu em São Paulo.", "Não gostou?", "Mudou-se em 1990!",
           "O preço é de R$ 3,50."],
    "nl": ["Dhr. De Vries kwam om 5 uur.", "Hij vroeg: waarom?", "De coöperatie sloot."],
    "pl": ["Prof. Żółć urodził się w Łodzi.", "Czy wyjechał?", "Tak, do Gdańska!", "Zapłacił 3,50 zł."],
    "ja": ["橋は1967年に開通した。", "長さは90メートルです！", "なぜ閉鎖されたのか？",
           "「古いから。」", "と市長は言った。"],
    "zh": ["这座桥于1967年开通。", "它长90米！", "为什么关闭？", "市长说：“它太旧了。”", "后来重建了。"],
    "ar": ["بُنِيَ الجسر عام 1967.", "طوله 90 مترًا!", "متى أُغلق؟", "قال العمدة: «إنه قديم»."],
    "hi": ["पुल 1967 में खुला।", "यह 90 मीटर लंबा है!", "यह क्यों बंद हुआ?", "महापौर ने कहा कि यह पुराना है।"],
}  # fmt: skip


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("between", [" ", "\n", "\n\n", "  \n\t"])
@pytest.mark.parametrize("code", CODES)
def test_sentences_of_every_language_are_cut_exactly(code: str, between: str, form: str) -> None:
    """With letters as one character, and as a letter and its marks."""
    wanted = [unicodedata.normalize(form, sentence) for sentence in WHOLE[code]]  # type: ignore[arg-type]
    text = between.join(wanted)
    assert sentences(text, code) == wanted
    assert [(span.start, span.end) for span in split_sentences(text, code)] == [
        (start := text.index(sentence), start + len(sentence)) for sentence in wanted
    ]


def test_marks_of_direction_move_no_span() -> None:
    for inner in WHOLE["ar"]:
        text = f"\u202bX.\u202c {inner} \u2067Y.\u2069"
        assert any(inner in sentence for sentence in sentences(text, "ar")), sentences(text, "ar")
        # A mark after the last sentence is no sentence.
        assert "".join(sentences(text, "ar")).replace(" ", "") == text.replace(" ", "").rstrip("\u2069")


def test_abbreviations_initials_and_decimals_do_not_end_a_sentence() -> None:
    assert sentences("Dr. Berg met J. K. Moor at 5 p.m. on Monday. He paid $3.50, see Fig. 3.") == [
        "Dr. Berg met J. K. Moor at 5 p.m. on Monday.",
        "He paid $3.50, see Fig. 3.",
    ]
    assert sentences("Es gibt z.B. Brot. Der Wert war 1,5. Am 3. Oktober ist Dr. Meier da.", "de") == [
        "Es gibt z.B. Brot.",
        "Der Wert war 1,5.",
        "Am 3. Oktober ist Dr. Meier da.",
    ]


def test_list_marks_are_left_outside_and_items_are_whole() -> None:
    text = "1. The dam holds.\n2. The gate leaks.\n\n- Oak burns.\n* Ash too.\n• Elm not.\n(a) Fir.\nb) Yew."
    assert sentences(text) == [
        "The dam holds.", "The gate leaks.", "Oak burns.", "Ash too.", "Elm not.", "Fir.", "Yew.",
    ]  # fmt: skip


def test_numbers_of_a_list_on_one_line_are_no_sentences_of_their_own() -> None:
    assert sentences("1. The dam holds. 2. The gate leaks.") == ["The dam holds.", "The gate leaks."]


def test_a_number_that_numbers_nothing_stays_in_its_sentence() -> None:
    assert sentences("3. Oktober ist ein Feiertag.", "de") == ["3. Oktober ist ein Feiertag."]
    assert sentences("1. FC Adler gewann.", "de") == ["1. FC Adler gewann."]
    assert sentences("A. Moor founded the firm.") == ["A. Moor founded the firm."]
    assert sentences("12.") == ["12."]
    assert sentences("-5 °C was measured.") == ["-5 °C was measured."]


def test_a_wrapped_line_goes_on_and_a_short_one_ends() -> None:
    wrapped = "The oldest of the four mills on the river stands\nclose to the harbour."
    assert sentences(wrapped) == [wrapped]
    assert sentences("Opening hours\nmonday to friday") == ["Opening hours", "monday to friday"]
    assert (
        len(sentences("The oldest of the four mills on the river stands here:\n- in Arden\n- in Moss")) == 3
    )


def test_tables_and_code_keep_all_their_words() -> None:
    text = "| Tank | Litres |\n|---|---|\n| 1 | 20 |\n\n```python\nx = 1\n```"
    assert sentences(text) == ["| Tank | Litres |", "| 1 | 20 |", "```python", "x = 1"]


def test_a_quotation_with_full_stops_stays_in_its_sentence() -> None:
    assert sentences('She said "It is old. It is red." Then she left.') == [
        'She said "It is old. It is red."',
        "Then she left.",
    ]


@pytest.mark.parametrize(
    ("language", "text", "count"),
    [
        ("ja", "橋は1967年に開通した。長さは90メートルです", 2),
        ("zh", "桥在1967年开通。它很长！", 2),
        ("ar", "الجسر قديم. متى بني؟ بني عام 1967.", 3),
        ("hi", "पुल पुराना है। वह लंबा है।", 2),
        ("xx", "One stands. Two fall.", 2),
        ("EN-us", "Dr. Berg left. One stands.", 2),
    ],
)
def test_other_scripts_and_unknown_languages_are_split_too(language: str, text: str, count: int) -> None:
    assert len(sentences(text, language)) == count


def test_many_lines_take_time_in_proportion() -> None:
    assert len(split_sentences("The pump runs.\n" * 5_000, "en")) == 5_000


# Words


def test_numbers_are_whole_and_a_sign_belongs_to_its_number() -> None:
    assert words("At -5 °C or \u22125 °C, 1,5 % and 3.14 on 12/5 in 1990-1995") == [
        "at", "-5", "c", "or", "-5", "c", "1,5", "and", "3.14", "on", "12/5", "in", "1990", "1995",
    ]  # fmt: skip


def test_marks_and_vowel_signs_do_not_cut_a_word() -> None:
    assert words("नहीं हिन्दी") == ["नहीं", "हिन्दी"]
    assert words("كِتَاب") == ["كِتَاب"]
    assert words("cafe\u0301") == words("café") == ["café"]
    assert words("don’t") == ["don't"]


def test_unspaced_scripts_are_words_letter_by_letter() -> None:
    assert words("東京1967年") == ["東", "京", "1967", "年"]


def test_content_words_leave_out_function_words_and_contracted_ones() -> None:
    assert content_words("It isn't the mill's oldest wheel", ENGLISH) == ["mill", "oldest", "wheel"]


def test_words_match_by_their_beginnings_and_numbers_only_when_equal() -> None:
    assert matches("repaired", frozenset({"repairs"}))
    assert not matches("north", frozenset({"south"}))
    assert not matches("austria", frozenset({"australia"}))
    assert not matches("1990", frozenset({"1991"}))
    assert not matches("-5000", frozenset({"-5001"}))
    assert not matches("cat", frozenset({"cats"}))


# Languages


@pytest.mark.parametrize("code", CODES)
def test_every_table_is_complete_and_its_patterns_compile(code: str) -> None:
    assert set(TABLES[code]) == set(TABLES["en"])
    language = load_language(code)
    assert language.code == code
    assert language.denial <= language.polar | {"不，", "不,"}
    assert language.short.format(question="Q", answer="A").count("Q") >= 1
    assert "{" not in language.short.format(question="Q", answer="A")


def test_a_language_without_a_table_has_the_english_lists_and_a_region_is_no_other_language() -> None:
    assert load_language("ru").function == ENGLISH.function
    assert load_language("de-AT").code == load_language("DE").code == "de"
    assert base_code("zh_Hant") == "zh"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The bridge was built in 1967 and it is long.", "en"),
        ("Die Brücke wurde 1967 gebaut und sie ist lang.", "de"),
        ("El puente fue construido en 1967 y es muy largo.", "es"),
        ("Le pont a été construit en 1967 et il est très long.", "fr"),
        ("Il ponte è stato costruito nel 1967 ed è molto lungo.", "it"),
        ("A ponte foi construída em 1967 e é muito longa.", "pt"),
        ("De brug werd in 1967 gebouwd en is zeer lang.", "nl"),
        ("Most został zbudowany w 1967 i jest bardzo długi.", "pl"),
        ("橋は1967年に開通した。", "ja"),
        ("桥在1967年开通。", "zh"),
        ("بني الجسر في عام 1967 وهو طويل.", "ar"),
        ("पुल 1967 में बना था और यह लंबा है।", "hi"),
        ("1967", "en"),
        ("", "en"),
        ("\x00", "en"),
    ],
)
def test_a_language_is_known_by_its_script_or_its_function_words(text: str, code: str) -> None:
    assert detect_language(text) == code


# Claims. A lost claim is worse than a greeting that is judged: when in doubt, it is a claim.

CLAIMS = {
    "en": """
        We found no damage in the north tower.
        We could not find any damage in the north tower.
        Please Touch Museum opened in 1976.
        Please restart the router.
        Please fill in form B within thirty days.
        Here are the three winners: A, B and C.
        Thanks to the new pump, output rose 12 %.
        Thank You for Smoking is a film.
        Sure Foods Ltd. closed in 2010.
        Sure Foods is a firm.
        Certainly the oldest mill stands in Arden.
        OK Corral was the site of a gunfight.
        The report does not contain errors.
        The document does not contain errors.
        The source does not contain nitrogen.
        Unknown Mortal Orchestra is a band.
        Hello Kitty was created in 1974.
        Hello Kitty is a cat.
        Dear Evan Hansen opened on Broadway.
        As an AI company, Foo was founded in 2015.
        We do not provide refunds.
        We don't ship to Norway.
        We do not know who built the wall.
        Sorry, the store is closed on Sundays.
        I'm afraid that the mill is closed.
        I'm sorry, but the museum closed in 1990.
        Unfortunately, the bridge collapsed.
        None of the mills burned.
        None.
        No idea is new.
        Not all birds fly.
        N/A was the label.
        Good Luck Charlie aired in 2010.
        Enjoy a great view from the tower.
        Cheers is a sitcom.
        Contact us at 0800 123.
        Let Me Know is a song.
        I don't know the architect, but the mill was built in 1850.
        I'm not sure; the mill opened in 1990.
        There is no data on Mars.
        There is no information about survivors.
        There is no mention of pumps in the contract.
        I have no siblings.
        I do not have a car.
        I cannot swim.
        The context of the battle was a famine.
        The price is not given in euros.
        He wrote "What is life?"
        The book 'Why?' is old.
        "Why?" is a book.
        It asks (who is next?) and stops.
        I can help plants grow.
        The passage does not contain a toilet.
        Let me explain: the mill closed.
        I hope this is clear: the mill closed.
        Hope Street is long.
        12.
        x = 1
        """,
    "de": """
        Hallo Welt ist ein Programm.
        Klar ist das Wasser.
        Wir konnten im Nordturm keine Schäden finden.
        Ich konnte im Nordturm keine Schäden finden.
        Wir haben keine Filiale in Bonn.
        Leider brannte die Mühle 1990 ab.
        Es tut mir leid, das Museum ist geschlossen.
        Ich weiß es nicht, aber die Mühle brannte 1990.
        Ich habe keine Geschwister.
        Der Bericht enthält keine Fehler.
        Als KI-Firma wurde Foo 2015 gegründet.
        Hier sind die Sieger: A, B und C.
        Bitte füllen Sie Formular B aus.
        Keine Ahnung heißt das Lied.
        """,
    "es": """
        No tengo hermanos.
        Lo siento, el museo cerró.
        Claro de Luna es una sonata.
        Hola es una revista.
        Gracias a la bomba, la producción subió.
        No puede volar.
        Aquí están los tres ganadores: A, B y C.
        """,
    "fr": """
        Merci aux pompes, la production a augmenté.
        Désolé, le musée est fermé.
        Salut les copains est une émission.
        Bien sûr que la Terre est ronde.
        Nous ne livrons pas en Norvège.
        Je n'ai pas de frère.
        Voici les trois gagnants : A, B et C.
        """,
    "it": """
        Ciao è un saluto.
        Certo Giovanni arrivò.
        Non ho fratelli.
        Mi dispiace, il museo è chiuso.
        Grazie alla pompa la produzione è salita.
        """,
    "pt": """
        Olá é uma palavra.
        Infelizmente, o moinho queimou.
        Não tenho irmãos.
        Claro que a Terra é redonda.
        """,
    "nl": """
        Hallo is een woord.
        Helaas is de molen niet meer open.
        Ik kan niet zwemmen.
        Beste is een stad.
        """,
    "pl": """
        Nie ma młyna.
        Niestety, młyn spłonął.
        Oczywiście Ziemia jest okrągła.
        Nie znaleziono szkód.
        """,
    "ja": """
        損傷は見つかりませんでした。
        被害の情報はありません。
        申し訳ありませんが、美術館は閉館しました。
        こんにちは赤ちゃんは曲です。
        お手伝いロボットは1990年に作られた。
        """,
    "zh": """
        不能使用水。
        很遗憾，博物馆周日关闭。
        北塔没有损坏。
        无法确定死因。
        """,
    "ar": """
        لم أجد أي ضرر.
        للأسف، المتحف مغلق.
        لا يمكن فتح الباب.
        """,
    "hi": """
        दुर्भाग्य से, संग्रहालय बंद है।
        नमस्ते लंदन एक फिल्म है।
        मुझे दो भाई हैं।
        """,
}

TALK = {
    "en": """
        I could not find anything about closing your account.
        Is there something else I can help with?
        IDK
        I don't know.
        I don’t know the answer to that.
        I don't know, but I can help you find out.
        I'm sorry, but I can't assist with that.
        Sorry, I don't have that information.
        Unfortunately, I cannot find any information about the mill in the provided context.
        Based on the provided context, I cannot answer this question.
        The context does not mention the price.
        The provided text does not say who signed it.
        There is no mention of the price in the context.
        There is not enough information to answer the question.
        The price is not mentioned in the provided context.
        It cannot be determined from the context.
        The question cannot be answered based on the context.
        Not enough information.
        As an AI language model, I don't have personal opinions.
        I am an AI assistant.
        I'm not sure.
        I am unable to answer that question.
        I can't provide medical advice.
        I'm sorry, I can't.
        Unknown.
        N/A
        Hello!
        **Hello!**
        Hello, John!
        Good morning,
        Sure!
        Sure, here is a summary:
        Certainly! Here are the opening hours:
        That's a great question!
        Thank you for asking.
        You're welcome!
        Let me know if you have any other questions!
        If you have more questions, feel free to ask.
        Please provide more details.
        Could you clarify your question.
        I hope this helps!
        I'd be happy to help you with that.
        Have a nice day!
        Best regards,
        I apologize for the confusion.
        The winners are as follows:
        "Is it open?"
        (Is it open?)
        ```python
        🙂
        ...
        """,
    "de": """
        Hallo!
        Das weiß ich nicht.
        Es tut mir leid, aber ich kann diese Frage nicht beantworten.
        Leider kann ich dazu keine Informationen finden.
        Ich habe dazu keine Informationen.
        Keine Ahnung.
        Als KI-Sprachmodell kann ich das nicht sagen.
        Der Kontext enthält keine Informationen dazu.
        Vielen Dank für Ihre Frage!
        Ich hoffe, das hilft Ihnen.
        Kann ich Ihnen sonst noch helfen?
        Natürlich!
        Mit freundlichen Grüßen
        """,
    "es": """
        ¡Hola!
        No lo sé.
        Lo siento, no puedo responder a esa pregunta.
        No tengo información sobre eso.
        ¿Hay algo más en lo que pueda ayudarte?
        Espero que esto te ayude.
        El contexto no menciona el precio.
        """,
    "fr": """
        Bonjour !
        Je ne sais pas.
        Je suis désolé, mais je ne peux pas répondre à cette question.
        Malheureusement, je n'ai pas trouvé d'informations à ce sujet.
        N'hésitez pas à me poser d'autres questions.
        J'espère que cela vous aide.
        Le contexte ne mentionne pas le prix.
        """,
    "it": """
        Ciao!
        Non lo so.
        Mi dispiace, non posso rispondere a questa domanda.
        Purtroppo non ho trovato informazioni.
        Spero che questo ti aiuti.
        """,
    "pt": """
        Olá!
        Não sei.
        Desculpe, não posso responder a essa pergunta.
        Infelizmente, não encontrei informações sobre isso.
        Espero que isso ajude.
        """,
    "nl": """
        Hallo!
        Dat weet ik niet.
        Sorry, ik kan deze vraag niet beantwoorden.
        Helaas kan ik daar geen informatie over vinden.
        Ik hoop dat dit helpt.
        """,
    "pl": """
        Cześć!
        Nie wiem.
        Przepraszam, nie mogę odpowiedzieć na to pytanie.
        Niestety, nie mam informacji na ten temat.
        Mam nadzieję, że to pomoże.
        """,
    "ja": """
        こんにちは。
        わかりません。
        申し訳ありませんが、その質問にはお答えできません。
        その情報は見つかりませんでした。
        他に質問はありますか？
        """,
    "zh": """
        你好！
        我不知道。
        抱歉，我无法回答这个问题。
        我没有找到相关信息。
        还有什么可以帮您的吗？
        """,
    "ar": """
        مرحبا!
        لا أعرف.
        عذرا، لا أستطيع الإجابة على هذا السؤال.
        هل هناك شيء آخر؟
        """,
    "hi": """
        नमस्ते!
        मुझे नहीं पता।
        क्षमा करें, मैं इस प्रश्न का उत्तर नहीं दे सकता।
        """,
}


def lines(texts: dict[str, str]) -> list[tuple[str, str]]:
    return [(code, line.strip()) for code, text in texts.items() for line in text.strip().splitlines()]


@pytest.mark.parametrize(("code", "sentence"), lines(CLAIMS))
def test_a_claim_is_never_taken_for_talk(code: str, sentence: str) -> None:
    assert makes_claim(sentence, load_language(code))


@pytest.mark.parametrize(("code", "sentence"), lines(TALK))
def test_talk_makes_no_claim(code: str, sentence: str) -> None:
    assert not makes_claim(sentence, load_language(code))


@given(st.text(), st.sampled_from(CODES))
def test_any_text_can_be_asked_whether_it_makes_a_claim(text: str, code: str) -> None:
    language = load_language(code)
    for question in (makes_claim, is_polar, is_assent, asks, has_address):
        assert question(text, language) in (True, False)
    assert count_negations(text, language) >= 0


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "No."), ("en", "Yes, it is."), ("en", "False!"), ("en", "No, they were not."), ("de", "Nein."),
        ("es", "Sí."), ("fr", "Oui."), ("ja", "はい。"), ("zh", "是的。"), ("ar", "نعم."), ("hi", "हाँ।"),
    ],
)  # fmt: skip
def test_yes_and_no_are_polar_with_or_without_it_is(code: str, text: str) -> None:
    assert is_polar(text, load_language(code))


@pytest.mark.parametrize("text", ["No mills burned.", "Norway.", "True North is a film.", "It is.", ""])
def test_a_sentence_with_something_to_say_is_not_polar(text: str) -> None:
    assert not is_polar(text, ENGLISH)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("en", "Who built it?"), ("en", "in which year was the final played"),
        ("en", 'Who wrote "What is life"?'),
        ("en", "Name the capital of Norway."), ("de", "Wann wurde die Brücke gebaut"),
        ("fr", "Quelle est la capitale"), ("ja", "橋はいつ開通しましたか"),
        ("zh", "桥什么时候开通"), ("ar", "متى بني الجسر"),
    ],
)  # fmt: skip
def test_a_question_needs_no_question_mark(code: str, text: str) -> None:
    assert asks(text, load_language(code))


def test_a_heading_asks_nothing() -> None:
    assert not asks("Energy density of a lithium cell", ENGLISH)
    assert not asks("", ENGLISH)


def test_negations_are_counted_with_contracted_ones() -> None:
    assert count_negations("It isn't red, nor is it not blue; nobody knows.", ENGLISH) == 4
    assert count_negations("損傷はありません", load_language("ja")) == 1
    assert count_negations("The knot is not tight", ENGLISH) == 1


@pytest.mark.parametrize(
    ("code", "text", "simple"),
    [
        ("en", "The bow is at most 1,5 % in hall 3.", True),
        ("en", "The mill burned and the dam broke.", False),
        ("en", "It burned.", False),
        ("en", "The mill, an old one, burned.", False),
        ("en", "The mill that burned was old.", False),
        ("en", "The oldest mill " + "on the river " * 5 + "burned.", False),
        ("en", "I saw the mill burn.", False),
        ("de", "Die Mühle brannte 1990.", True),
        ("de", "Die Mühle brannte, weil es blitzte.", False),
        ("zh", "桥于1967年开通。", True),
        ("zh", "因为下雨桥关闭。", False),
        ("ja", "橋は1967年に開通。", True),
        ("ja", "雨だから橋は閉鎖。", False),
    ],
)
def test_a_sentence_is_simple_only_when_nothing_joins_or_leans(code: str, text: str, simple: bool) -> None:
    assert is_simple(text, load_language(code)) == simple


def test_a_company_that_says_we_addresses_nobody() -> None:
    assert not has_address("We found no damage here.", ENGLISH)
    assert has_address("I could help you.", ENGLISH)


def test_a_name_that_begins_with_a_dot_does_not_end_a_sentence() -> None:
    text = "Orbex was written for the .NET platform. It is old."
    assert [text[span.start : span.end] for span in split_sentences(text, "en")] == [
        "Orbex was written for the .NET platform.",
        "It is old.",
    ]
