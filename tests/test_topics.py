"""Topic templates subscribe to, and read, exactly what the broker would deliver."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gateway.topics import TopicTemplate

# Under load a first example may take its time.
unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def delivered(wanted: str, topic: str) -> bool:
    """Whether a broker delivers a topic to a filter: MQTT 5, section 4.7, level by level."""
    if topic.startswith("$") and wanted[0] in "+#":
        return False
    levels = topic.split("/")
    for i, level in enumerate(wanted.split("/")):
        if level == "#":
            return True
        if i == len(levels) or level not in ("+", levels[i]):
            return False
    return len(wanted.split("/")) == len(levels)


def test_the_reference_agrees_with_the_examples_of_the_standard() -> None:
    assert delivered("sport/tennis/player1/#", "sport/tennis/player1")
    assert delivered("sport/tennis/player1/#", "sport/tennis/player1/score/wimbledon")
    assert delivered("#", "a/b")
    assert not delivered("sport/+", "sport")
    assert delivered("sport/+", "sport/")
    assert delivered("+/+", "/finance")
    assert delivered("/+", "/finance")
    assert not delivered("+", "/finance")
    assert not delivered("#", "$SYS/x")


@pytest.mark.parametrize(
    ("text", "subscribed", "topic", "household"),
    [
        ("meters/{household}/reading", "meters/+/reading", "meters/h-001/reading", "h-001"),
        ("{household}", "+", "h-001", "h-001"),
        ("/{household}", "/+", "/h-001", "h-001"),
        ("m/meter-{household}.v2", "m/+", "m/meter-h.v2", "h"),
        ("m/{household}/+/x", "m/+/+/x", "m/h//x", "h"),
        ("m/{household}/#", "m/+/#", "m/h/a/b", "h"),
        ("+/{household}", "+/+", "/h", "h"),
        ("a.b/{household}", "a.b/+", "a.b/h", "h"),
    ],
)
def test_a_template_is_a_filter_and_finds_the_household(
    text: str, subscribed: str, topic: str, household: str
) -> None:
    template = TopicTemplate.parse(text)
    assert template.captures
    assert template.filter == subscribed
    found = template.pattern.fullmatch(topic)
    assert found is not None
    assert found[1] == household


@pytest.mark.parametrize(
    ("text", "topic"),
    [
        ("meters/{household}/reading", "meters//reading"),
        ("meters/{household}/reading", "meters/a/b/reading"),
        ("meters/{household}/reading", "meters/a/reading/x"),
        ("m/meter-{household}", "m/a"),
        ("m/meter-{household}", "m/meter-"),
        ("a.b/{household}", "axb/h"),
    ],
)
def test_a_topic_of_another_shape_names_no_household(text: str, topic: str) -> None:
    assert TopicTemplate.parse(text).pattern.fullmatch(topic) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a/\0",
        "a/b+",
        "a/+b/c",
        "#/a",
        "a/#/b",
        "a/b#",
        "{household}/{household}",
        "{household}{household}",
        "a/{Meter}",
        "a/{",
        "a/}",
        "a/{{household}}",
        "a/+{household}",
        "a/{household}#",
        "a/{ household }",
    ],
)
def test_a_text_that_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"captures|wildcard|stand alone|[$]"):
        TopicTemplate.parse(text)


def test_a_shared_subscription_is_refused_since_its_messages_come_on_other_topics() -> None:
    """MQTT 5, 4.8.2: "$share/GROUP/FILTER" delivers topics that match FILTER, so none would be known."""
    with pytest.raises(ValueError, match=r"topic|\$share"):
        TopicTemplate.parse("$share/group/meters/{household}")


def test_a_template_without_the_household_captures_none() -> None:
    template = TopicTemplate.parse("p1/+/reading")
    assert not template.captures
    assert template.pattern.fullmatch("p1/x/reading")


LEVELS = ["a", "b", "", "noiseless"]
levels = st.sampled_from(LEVELS)
topics = st.lists(levels, min_size=1, max_size=4).map("/".join).filter(bool)
templates = (
    st.tuples(
        st.lists(levels | st.just("+"), max_size=3),
        st.sampled_from([[], ["{household}"], ["#"], ["{household}", "#"], ["{household}", "+"]]),
    )
    .map(lambda parts: "/".join(parts[0] + parts[1]))
    .filter(bool)
)
prefixes = st.lists(st.sampled_from(["a", "b", "noiseless"]), min_size=1, max_size=3).map("/".join)


@unhurried
@given(templates, topics)
@example("a/#", "a")
def test_the_pattern_matches_what_the_broker_delivers_but_for_an_empty_household(
    text: str, topic: str
) -> None:
    template = TopicTemplate.parse(text)
    matched = template.pattern.fullmatch(topic) is not None
    expected = delivered(template.filter, topic)
    if "{household}" in text:
        place = text.split("/").index("{household}")
        named = topic.split("/")
        expected = expected and place < len(named) and named[place] != ""
    assert matched == expected


@unhurried
@given(st.text(st.characters(exclude_characters="\0+#/", exclude_categories=["Cs"]), min_size=1))
@example("two\nlines")
def test_all_levels_match_whatever_text_they_hold(level: str) -> None:
    assert TopicTemplate.parse("m/{household}/#").pattern.fullmatch(f"m/h/{level}")
    assert TopicTemplate.parse("m/{household}/+").pattern.fullmatch(f"m/h/{level}")


@unhurried
@given(templates, prefixes)
@example("{household}", "noiseless")
@example("noiseless/{household}", "noiseless")
@example("noiseless/#", "noiseless")
@example("+/+", "noiseless")
def test_overlap_is_found_exactly_where_some_topic_below_the_prefix_would_be_delivered(
    text: str, prefix: str
) -> None:
    template = TopicTemplate.parse(text)
    below = [f"{prefix}/{tail}" for tail in tails()]
    assert template.overlaps(prefix) == any(delivered(template.filter, topic) for topic in below)


def tails() -> list[str]:
    """All ends of topics that a filter of up to five levels can tell apart."""
    ends = list(LEVELS)
    for _ in range(3):
        ends += [f"{end}/{level}" for end in ends for level in LEVELS]
    return list(dict.fromkeys(ends))
