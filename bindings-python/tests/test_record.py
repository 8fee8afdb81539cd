"""Records: attribute and item access to a response's JSON, losslessly."""

import copy
import json
import pickle
from collections.abc import Mapping

import pytest
from gatewright import Record

TEXT = (
    '{"id":"c1","zeta":null,"alpha":{"deep":[1,{"x":2.5}]},"items":[1],"class":"k",'
    '"big":123456789012345678901234567890,"text":"é\\u2028\\n","unknown_field":true}'
)


@pytest.fixture
def record() -> Record:
    return Record.from_json(TEXT)


def test_members_are_accessible_by_attribute_and_item(record: Record) -> None:
    assert record.alpha.deep[1].x == 2.5
    assert record["alpha"]["deep"][1]["x"] == 2.5
    assert record.text == "é\u2028\n"
    assert record.big == 123456789012345678901234567890


def test_unknown_fields_nulls_and_order_survive(record: Record) -> None:
    assert record.unknown_field is True
    assert record.zeta is None
    assert "zeta" in record
    assert list(record) == list(record.keys()) == list(json.loads(TEXT))
    assert json.loads(record.to_json()) == json.loads(TEXT)
    assert list(json.loads(record.to_json())) == list(json.loads(TEXT))
    assert record.to_dict() == json.loads(TEXT)


def test_an_unknown_attribute_error_names_the_existing_ones(record: Record) -> None:
    with pytest.raises(AttributeError, match=r"choises.*id, zeta, alpha"):
        record.choises  # noqa: B018
    assert not hasattr(record, "choises")


def test_an_absent_declared_member_is_none_as_attribute_and_raises_as_item(record: Record) -> None:
    # 2.2 declares tool_calls; a gateway may omit it.
    assert record.tool_calls is None
    assert "tool_calls" not in record
    with pytest.raises(KeyError, match="tool_calls"):
        record["tool_calls"]
    assert record.get("tool_calls") is None
    assert record.get("tool_calls", 5) == 5
    assert record.get("id", 5) == "c1"


def test_a_required_member_omitted_by_the_server_is_none_too() -> None:
    # 2.3 has finish_reason on every choice; servers that omit it break no script of the official SDK.
    chunk = Record.from_json('{"choices": [{"index": 0, "delta": {"content": "a"}}]}')
    assert chunk.choices[0].finish_reason is None
    assert chunk.id is chunk.usage is chunk.choices[0].delta.role is None
    assert "finish_reason" not in chunk.choices[0]
    with pytest.raises(KeyError, match="finish_reason"):
        chunk.choices[0]["finish_reason"]
    with pytest.raises(AttributeError, match=r"finnish_reason.*index, delta"):
        chunk.choices[0].finnish_reason  # noqa: B018


def test_joined_text_is_none_if_its_parts_are_missing() -> None:
    # output_text is not a member of a response: it doesn't exist without the list that it is joined from.
    assert Record.from_json('{"output": []}').output_text == ""
    with pytest.raises(AttributeError, match="output_text"):
        Record.from_json('{"id": "r1"}').output_text  # noqa: B018


def test_members_named_like_methods_or_keywords_are_accessible(record: Record) -> None:
    assert record["items"] == [1]
    assert ("items", [1]) in record.items()
    assert getattr(record, "class") == record.class_ == record["class"] == "k"


def test_a_record_is_a_mapping(record: Record) -> None:
    assert isinstance(record, Mapping)
    assert len(record) == 8
    assert dict(record)["id"] == "c1"
    assert {**record}["id"] == "c1"
    assert 7 not in record
    with pytest.raises(KeyError):
        record[7]  # type: ignore[index]
    match record:
        case {"id": "c1", "alpha": {"deep": [1, *_]}}:
            pass
        case _:
            pytest.fail("a record matches a mapping pattern")


def test_equality_is_by_value_with_records_and_dicts_in_any_order(record: Record) -> None:
    assert record == Record.from_json(TEXT)
    assert record == json.loads(TEXT)
    assert json.loads(TEXT) == record
    assert Record({"a": 1, "b": {"c": 2}}) == Record({"b": {"c": 2}, "a": 1.0})
    assert record != {"id": "c1"}
    assert record != "c1"
    assert [Record({"a": 1})] == [{"a": 1}]


def test_a_record_is_immutable_and_unhashable(record: Record) -> None:
    with pytest.raises(AttributeError):
        record.id = "c2"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        record["id"] = "c2"  # type: ignore[index]
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


def test_copies_and_pickles(record: Record) -> None:
    assert copy.copy(record) == record
    assert copy.deepcopy(record) == record
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(record, protocol))
        assert type(back) is Record
        assert back == record
        assert back.to_json() == record.to_json()


def test_repr_evaluates_to_an_equal_record() -> None:
    record = Record({"a": [1, None, {"b": "x"}]})
    assert repr(record) == "Record({'a': [1, None, {'b': 'x'}]})"
    assert eval(repr(record)) == record


def test_dir_lists_the_members_for_completion(record: Record) -> None:
    assert {"alpha", "unknown_field", "to_dict"} <= set(dir(record))


def test_a_repeated_name_overrides_as_in_json_loads() -> None:
    record = Record.from_json('{"a": 1, "b": 2, "a": 3}')
    assert record.a == record["a"] == 3
    assert record.to_dict() == {"a": 3, "b": 2}


@pytest.mark.parametrize("text", ["", "[]", "3", '{"a":}', '{"a":1} {}', "[" * 300])
def test_anything_but_a_json_object_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Record.from_json(text)


def test_inner_records_outlive_the_outer_one(record: Record) -> None:
    inner = record.alpha
    del record
    assert inner.deep[0] == 1


def test_class_attributes_take_precedence_over_members() -> None:
    names = [name for name in vars(Record) if not name.startswith("__")]
    assert names
    shadowed = Record({**dict.fromkeys(names, "member"), "__len__": "member"})
    for name in names:
        assert getattr(shadowed, name) != "member", name
        assert shadowed[name] == "member"
    assert shadowed.__len__() == len(names) + 1


def test_escapes_in_names_and_strings_are_decoded() -> None:
    text = r'{"a\u0062": "\ud83d\ude00 \"q\" \\ \/ \n", "": {"\"": [""]}, "ab\\": 1}'
    record = Record.from_json(text)
    assert record.ab == '\U0001f600 "q" \\ / \n'
    assert record[""]['"'] == [""]
    assert record.to_dict() == json.loads(text)
    assert json.loads(record.to_json()) == json.loads(text)


NUMBERS = [
    "0",
    "-0",
    "-1",
    "0.5",
    "-1.5e-7",
    "1e5",
    "1E+2",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "1234567890123456789.5",
    "NaN",
    "Infinity",
    "-Infinity",
]


@pytest.mark.parametrize("number", [*NUMBERS, "1" * 400])
def test_numbers_match_pythons_json_module(number: str) -> None:
    value, expected = Record.from_json(f'{{"n": [{number}]}}').n[0], json.loads(number)
    assert type(value) is type(expected)
    assert repr(value) == repr(expected)


MALFORMED = [
    '{"a": 01}',
    '{"a": 1.}',
    '{"a": -}',
    '{"a": tru}',
    '{"a": "\n"}',
    r'{"a": "\x"}',
    r'{"a": "\ud800"}',
    '{"a" 1}',
    "{a: 1}",
    '{"a": 1,}',
    '{"a": [1,]}',
    '{"a": [1 2]}',
    '{"a": "b',
    '{"a": 1',
    "\ufeff{}",
]


@pytest.mark.parametrize("text", MALFORMED)
def test_malformed_json_is_rejected_with_its_position(text: str) -> None:
    with pytest.raises(ValueError, match=r"at line 1 column \d+|at line 2 column \d+"):
        Record.from_json(text)


def test_nesting_has_a_limit() -> None:
    def nested(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    assert Record.from_json(nested(200)).to_json() == nested(200)
    with pytest.raises(ValueError, match="recursion limit exceeded"):
        Record.from_json(nested(201))
