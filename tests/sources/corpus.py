"""Messages as devices and bridges send them, and what each must become; every one is our own."""
# ruff: noqa: E501 - a case is a line

from __future__ import annotations

import base64
import json
import struct
from typing import Any, NamedTuple

import cbor2


class Case(NamedTuple):
    """A message, the [[source]] that reads it, and what it must become."""

    name: str
    source: dict[str, Any]
    topic: str
    payload: bytes
    expected: list[dict[str, Any]]
    retained: bool = False
    before: tuple[tuple[str, bytes], ...] = ()


def accept(
    meter: str, quantity: str, value: float, time: str | None = None, reason: str | None = None
) -> dict[str, Any]:
    unit = "W" if quantity == "power" else "Wh"
    return {
        "action": "accept",
        "meter": meter,
        "quantity": quantity,
        "value": value,
        "unit": unit,
        "time": time,
        "reason": reason,
    }


def reject(reason: str, action: str = "reject") -> dict[str, Any]:
    nothing = dict.fromkeys(("meter", "quantity", "value", "unit", "time"))
    return {"action": action, **nothing, "reason": reason}


def ignore(reason: str) -> dict[str, Any]:
    return reject(reason, "ignore")


def crc16_arc(octets: bytes) -> int:
    """Polynomial 0x8005, reflected: one bit at a time, as its definition says."""
    crc = 0
    for octet in octets:
        crc ^= octet
        for _ in range(8):
            crc = crc >> 1 ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def p1(*lines: str, header: str = "/XYZ5\\123456789_A", checked: bool = True) -> bytes:
    """A telegram of lines, with its check sum."""
    text = "\r\n".join([header, "", *lines, "!"]).encode()
    return text + (b"%04X\r\n" % crc16_arc(text) if checked else b"\r\n")


def varint(value: int) -> bytes:
    octets = []
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*octets, value])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a protobuf message: a varint, or octets with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sparkplug(*metrics: bytes, time_ms: int = 1_780_000_000_000) -> bytes:
    return field(1, time_ms) + b"".join(field(2, one) for one in metrics) + field(3, 7)


def axdr(*elements: bytes) -> bytes:
    return bytes([2, len(elements)]) + b"".join(elements)


def clock(text: bytes) -> bytes:
    return b"\x09\x0c" + text


def double_long(value: int) -> bytes:
    return b"\x06" + struct.pack(">I", value)


def packed(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def tasmota(energy: str) -> bytes:
    return b'{"Time":"2026-03-04T05:06:07","ENERGY":%b}' % energy.encode()


TASMOTA = {"preset": "tasmota", "topic": "tele/{meter}/SENSOR"}
TASMOTA_POWER = {"preset": "tasmota-power", "topic": "tele/{meter}/SENSOR"}
ONE_PHASE = tasmota('{"Total":812.044,"Today":1.204,"Power":731,"Factor":0.98}')
THREE_PHASES = tasmota('{"Total":1290.5,"Power":[411,-20,7],"Voltage":[231,230,229]}')

P1 = {"preset": "p1", "topic": "p1/{gateway}/raw", "meter": "0-0:96.1.1"}
P1_POWER = {**P1, "preset": "p1-power"}
DUTCH_ID = "E0099887766554433"
DUTCH = (
    "1-3:0.2.8(50)",
    "0-0:1.0.0(260704121500S)",
    f"0-0:96.1.1({DUTCH_ID.encode().hex().upper()})",
    "1-0:1.8.1(002345.678*kWh)",
    "1-0:1.8.2(001234.322*kWh)",
    "1-0:2.8.1(000010.000*kWh)",
    "1-0:2.8.2(000020.000*kWh)",
    "0-0:96.14.0(0002)",
    "1-0:1.7.0(00.125*kW)",
    "1-0:2.7.0(00.625*kW)",
    "0-1:24.2.1(260704121001S)(00987.654*m3)",
)
SWEDISH = (
    "0-0:1.0.0(260704121500W)",
    "1-0:1.8.0(00012345.678*kWh)",
    "1-0:2.8.0(00000001.000*kWh)",
    "1-0:1.7.0(0001.500*kW)",
)


def dutch_at(moment: str) -> bytes:
    return p1(DUTCH[0], f"0-0:1.0.0({moment})", *DUTCH[2:])


GLOW = {"preset": "glow"}
GLOW_POWER = {"preset": "glow-power"}
GLOW_TOPIC = "glow/A1B2C3D4E5F6/SENSOR/electricitymeter"


def glow(cumulative: float = 4321.125, power: float = 0.444, units: str = "kWh") -> bytes:
    inside = {
        "timestamp": "2026-02-03T04:05:06Z",
        "energy": {"import": {"cumulative": cumulative, "units": units, "mpan": "9876"}},
        "power": {"value": power, "units": "kW"},
    }
    return packed(electricitymeter=inside)


AMS = {"preset": "amsreader", "topic": "amsleser"}
AMS_POWER = {"preset": "amsreader-power", "topic": "amsleser"}
AMS_LIST_3 = (
    b'{"id":"AA:BB:CC:00:11:22","t":1780000003,"data":{"meterId":"7359990000000001","P":1500,"PO":0,'
    b'"tPI":9876.54,"rtc":1780000000}}'
)

BIRTH = sparkplug(
    field(1, b"Active") + field(2, 5) + field(4, 3) + field(10, 100),
    field(1, b"Import") + field(2, 6) + field(4, 8) + field(11, 123_456),
)
SPARKPLUG = {"preset": "sparkplug", "value": "Active", "unit": "W", "quantity": "power"}
DBIRTH, DDATA = "spBv1.0/site/DBIRTH/node1/m7", "spBv1.0/site/DDATA/node1/m7"
MOMENT = "2026-05-28T20:26:40Z"

SENML = {"preset": "senml", "topic": "meters/{meter}/senml", "quantity": "register"}
WMBUS = {"preset": "wmbusmeters", "topic": "wmbusmeters/+"}
RTLAMR = {"preset": "rtlamr", "topic": "rtlamr"}
IDM = (
    b'{"Time":"2026-05-05T06:07:08.123456789Z","Type":"IDM","Message":{"ERTSerialNumber":44556677,'
    b'"LastConsumptionCount":300123,"DifferentialConsumptionIntervals":[26,25]}}'
)
VIENNA = {"preset": "wienernetze", "topic": "dlms/{meter}/raw"}
WINTER_CLOCK = bytes.fromhex("07e90c010308 1e00ff8000 00".replace(" ", ""))
SUMMER_CLOCK = bytes.fromhex("07e906010308 1e00ff8000 80".replace(" ", ""))


def vienna(moment: bytes) -> bytes:
    numbers = (7_654_321, 1_111, 22, 33, 640, 40)
    return axdr(clock(moment), *(double_long(number) for number in numbers))


TTS = {
    "preset": "tts",
    "value": "/uplink_message/decoded_payload/energy_kwh",
    "unit": "kWh",
    "quantity": "register",
}
NUMBER = {"topic": "dev/{meter}/value", "format": "number", "unit": "kWh", "quantity": "register"}
JSON = {"topic": "dev/{meter}/json", "value": "/v", "unit": "W", "quantity": "power"}
INTERVAL = {"topic": "dev/{meter}/interval", "value": "/wh", "unit": "Wh", "time": {"at": "/ts"}}
FEEDER = {
    "topic": "feeder/{feeder}",
    "each": "/meters",
    "value": "/kwh",
    "unit": "kWh",
    "quantity": "register",
    "meter": "/id",
    "time": {"at": "/ts"},
}


def number(name: str, text: bytes, *expected: dict[str, Any], **fields: object) -> Case:
    return Case(name, {**NUMBER, **fields}, "dev/n1/value", text, list(expected))


def json_case(name: str, text: bytes, *expected: dict[str, Any], **fields: object) -> Case:
    return Case(name, {**JSON, **fields}, "dev/j1/json", text, list(expected))


def interval(name: str, text: bytes, *expected: dict[str, Any], **fields: object) -> Case:
    return Case(name, {**INTERVAL, **fields}, "dev/i1/interval", text, list(expected))


def plain(  # noqa: PLR0917 - a row of a table
    name: str, preset: str, template: str, topic: str, text: bytes, expected: dict[str, Any], **fields: object
) -> Case:
    """A case of a preset whose topic the user writes."""
    return Case(name, {"preset": preset, "topic": template, **fields}, topic, text, [expected])


CASES = [
    Case("tasmota", TASMOTA, "tele/plug4/SENSOR", ONE_PHASE, [accept("plug4", "register", 812_044)]),
    Case("tasmota power", TASMOTA_POWER, "tele/plug4/SENSOR", ONE_PHASE, [accept("plug4", "power", 731)]),
    Case("tasmota phases are summed", TASMOTA_POWER, "tele/m3/SENSOR", THREE_PHASES, [accept("m3", "power", 398)]),
    Case("tasmota without phases is no zero", TASMOTA_POWER, "tele/m3/SENSOR", tasmota('{"Power":[]}'), [reject("wrong_type")]),
    Case("tasmota phases in phases", TASMOTA_POWER, "tele/m3/SENSOR", tasmota('{"Power":[[1]]}'), [reject("wrong_type")]),
    Case("tasmota phase without value", TASMOTA_POWER, "tele/m3/SENSOR", tasmota('{"Power":[1,null]}'), [reject("wrong_type")]),
    Case("tasmota nan spoils the document", TASMOTA, "tele/plug4/SENSOR", b'{"X":{"T":nan},"ENERGY":{"Total":1}}', [reject("undecodable")]),
    Case("tasmota partial message", TASMOTA, "tele/plug4/SENSOR", b'{"Time":"2026-03-04T05:06:07","DS":{"T":3.1}}', [ignore("missing_field")]),
    Case("tasmota with a declared clock", {**TASMOTA, "time": {"at": "/Time", "zone": "Europe/Vienna"}}, "tele/plug4/SENSOR", ONE_PHASE, [accept("plug4", "register", 812_044, "2026-03-04T04:06:07Z")]),
    Case("tasmota clock without a zone", {**TASMOTA, "time": {"at": "/Time"}}, "tele/plug4/SENSOR", ONE_PHASE, [reject("bad_time")]),
    Case("tasmota other topic", TASMOTA, "tele/plug4/STATE", ONE_PHASE, [ignore("unknown_topic")]),
    Case("tasmota stale power", TASMOTA_POWER, "tele/plug4/SENSOR", ONE_PHASE, [{**accept("plug4", "power", 731), "action": "ignore", "reason": "stale_retained"}], retained=True),
    Case("tasmota kept register", TASMOTA, "tele/plug4/SENSOR", ONE_PHASE, [accept("plug4", "register", 812_044, None, "baseline only")], retained=True),
    plain("tasmota-sml", "tasmota-sml", "tele/{device}/SENSOR", "tele/hall/SENSOR", b'{"Time":"x","MT175":{"E_in":77.125,"Power":-12,"Meter_id":"0a01"}}', accept("0a01", "register", 77_125), value="/MT175/E_in", meter=["/MT175/Meter_id", "{device}"]),
    plain("tasmota-sml empty id falls back to the topic", "tasmota-sml", "stat/{device}/STATUS10", "stat/hall/STATUS10", b'{"StatusSNS":{"MT175":{"E_in":31.000,"Meter_id":""}}}', accept("hall", "register", 31_000), value="/StatusSNS/MT175/E_in", meter=["/StatusSNS/MT175/Meter_id", "{device}"]),
    plain("tasmota-sml empty key", "tasmota-sml", "tele/{device}/SENSOR", "tele/hall/SENSOR", b'{"":{"Meter_number":3003,"HT":0.0,"NT":0.0}}', accept("3003", "register", 0), value=["//HT", "//NT"], meter="//Meter_number"),
    plain("tasmota-sml-power", "tasmota-sml-power", "tele/{meter}/SENSOR", "tele/hall/SENSOR", b'{"grid":{"power":-44.0,"L1":230}}', accept("hall", "power", -44), value="/grid/power"),
    plain("tasmota-sml-power one value per message", "tasmota-sml-power", "tele/{meter}/SENSOR", "tele/hall/SENSOR", b'{"grid":{"L2":44.0}}', ignore("missing_field"), value="/grid/power"),
    plain("tasmota-teleinfo", "tasmota-teleinfo", "+/tele/SENSOR", "linky/tele/SENSOR", b'{"TIC":{"ADCO":"044000000001","HCHC":111000,"HCHP":222500}}', accept("044000000001", "register", 333_500), value=["/TIC/HCHC", "/TIC/HCHP"]),
    plain("tasmota-teleinfo-power", "tasmota-teleinfo-power", "+/tele/SENSOR", "linky/tele/SENSOR", b'{"ENERGY":{"Power":170},"TIC":{"ADCO":"044000000001"}}', accept("044000000001", "power", 170)),
    plain("shelly-em", "shelly-em", "shellies/{meter}/emeter/0/total", "shellies/em-1/emeter/0/total", b"15234.7", accept("em-1", "register", 15_234.7)),
    plain("shelly-em-power", "shelly-em-power", "shellies/{meter}/emeter/0/power", "shellies/em-1/emeter/0/power", b"-17.55", accept("em-1", "power", -17.55)),
    plain("shelly-plug", "shelly-plug", "shellies/{meter}/relay/0/energy", "shellies/plug-1/relay/0/energy", b"90", accept("plug-1", "register", 1.5)),
    plain("shelly-plug thirds of a Wh", "shelly-plug", "shellies/{meter}/relay/0/energy", "shellies/plug-1/relay/0/energy", b"20", accept("plug-1", "register", 0.333)),
    plain("shelly-plug-power", "shelly-plug-power", "shellies/{meter}/relay/0/power", "shellies/plug-1/relay/0/power", b"3.01", accept("plug-1", "power", 3.01)),
    plain("shelly state text", "shelly-plug-power", "shellies/{meter}/relay/0", "shellies/plug-1/relay/0", b"on", reject("undecodable")),
    plain("shelly-switch", "shelly-switch", "{meter}/status/switch:0", "plus1pm-ab/status/switch:0", b'{"id":0,"apower":9.7,"aenergy":{"total":812.25,"by_minute":[1,2,3],"minute_ts":1780000000}}', accept("plus1pm-ab", "register", 812.25)),
    plain("shelly-switch-power", "shelly-switch-power", "{meter}/status/switch:0", "plus1pm-ab/status/switch:0", b'{"id":0,"apower":9.7}', accept("plus1pm-ab", "power", 9.7)),
    plain("shelly-pro3em", "shelly-pro3em", "{meter}/status/emdata:0", "garage/status/emdata:0", b'{"id":0,"total_act":3344.12,"total_act_ret":0.5}', accept("garage", "register", 3_344.12)),
    plain("shelly-pro3em-power", "shelly-pro3em-power", "{meter}/status/em:0", "garage/status/em:0", b'{"id":0,"n_current":null,"total_act_power":-220.125}', accept("garage", "power", -220.125)),
    plain("shelly-pro3em-rpc", "shelly-pro3em-rpc", "+/events/rpc", "garage/events/rpc", b'{"src":"shellypro3em-aa","method":"NotifyStatus","params":{"ts":1780000000.5,"emdata:0":{"total_act":55.5}}}', accept("shellypro3em-aa", "register", 55.5, "2026-05-28T20:26:40.500Z")),
    plain("shelly-pro3em-rpc-power", "shelly-pro3em-rpc-power", "+/events/rpc", "garage/events/rpc", b'{"src":"shellypro3em-aa","method":"NotifyStatus","params":{"ts":1780000000.08,"em:0":{"total_act_power":5}}}', accept("shellypro3em-aa", "power", 5, "2026-05-28T20:26:40.080Z")),
    plain("shelly events are no readings", "shelly-pro3em-rpc-power", "+/events/rpc", "garage/events/rpc", b'{"src":"shellypro3em-aa","method":"NotifyEvent","params":{"ts":1780000000}}', ignore("guard")),
    plain("shelly notifies of other components", "shelly-pro3em-rpc-power", "+/events/rpc", "garage/events/rpc", b'{"src":"shellypro3em-aa","method":"NotifyStatus","params":{"ts":1780000000,"wifi":{}}}', ignore("missing_field")),
    plain("zigbee2mqtt", "zigbee2mqtt", "zigbee2mqtt/{meter}", "zigbee2mqtt/Washing machine", b'{"energy":18.32,"power":2,"linkquality":90}', accept("Washing machine", "register", 18_320)),
    plain("zigbee2mqtt null", "zigbee2mqtt", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"energy":null,"power":2}', reject("wrong_type")),
    plain("zigbee2mqtt sentinel", "zigbee2mqtt", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"energy":281474976710655}', reject("sentinel")),
    plain("zigbee2mqtt divided sentinel", "zigbee2mqtt", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"energy":281474976710.655}', reject("sentinel")),
    plain("zigbee2mqtt-power", "zigbee2mqtt-power", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"power":-40.5}', accept("dryer", "power", -40.5)),
    plain("zigbee2mqtt-power sentinel", "zigbee2mqtt-power", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"power":-3276.8}', reject("sentinel")),
    plain("zigbee2mqtt availability", "zigbee2mqtt", "zigbee2mqtt/{meter}", "zigbee2mqtt/dryer", b'{"state":"online"}', ignore("missing_field")),
    plain("esphome", "esphome", "{meter}/sensor/energy/state", "heatpump/sensor/energy/state", b"1204.551", accept("heatpump", "register", 1_204_551)),
    plain("esphome nan", "esphome", "{meter}/sensor/energy/state", "heatpump/sensor/energy/state", b"nan", reject("undecodable")),
    plain("esphome None", "esphome", "{meter}/sensor/energy/state", "heatpump/sensor/energy/state", b"None", reject("undecodable")),
    plain("esphome-power", "esphome-power", "{meter}/sensor/power/state", "heatpump/sensor/power/state", b"1.9e3", accept("heatpump", "power", 1_900)),
    plain("dsmr-reader", "dsmr-reader", "{meter}/json", "dsmr/json", b'{"id":5,"timestamp":"2026-07-04T12:15:00+02:00","electricity_delivered_1":"2345.678","electricity_delivered_2":"1234.322"}', accept("dsmr", "register", 3_580_000, "2026-07-04T10:15:00Z")),
    plain("dsmr-reader-power", "dsmr-reader-power", "{meter}/json", "dsmr/json", b'{"timestamp":"2026-07-04T10:15:00Z","electricity_currently_delivered":"0.000","electricity_currently_returned":"1.250"}', accept("dsmr", "power", -1_250, "2026-07-04T10:15:00Z")),
    plain("dsmr-reader null summand", "dsmr-reader", "{meter}/json", "dsmr/json", b'{"timestamp":"2026-07-04T10:15:00Z","electricity_delivered_1":"1.0","electricity_delivered_2":null}', reject("wrong_type")),
    plain("dsmr-reader-split", "dsmr-reader-split", "dsmr/reading/{meter}", "dsmr/reading/electricity_delivered_1", b"2345.678", accept("electricity_delivered_1", "register", 2_345_678)),
    plain("dsmr-reader-split-power", "dsmr-reader-split-power", "{meter}/reading/electricity_currently_delivered", "dsmr/reading/electricity_currently_delivered", b"0.563", accept("dsmr", "power", 563)),
    plain("dsmr-reader clears a value", "dsmr-reader-split", "dsmr/reading/{meter}", "dsmr/reading/electricity_delivered_1", b"", ignore("empty")),
    Case("p1", P1, "p1/gw/raw", p1(*DUTCH), [accept(DUTCH_ID, "register", 3_580_000, "2026-07-04T10:15:00Z")]),
    Case("p1-power is net", P1_POWER, "p1/gw/raw", p1(*DUTCH), [accept(DUTCH_ID, "power", -500, "2026-07-04T10:15:00Z")]),
    Case("p1 summer side of the fold", P1, "p1/gw/raw", dutch_at("261025023000S"), [accept(DUTCH_ID, "register", 3_580_000, "2026-10-25T00:30:00Z")]),
    Case("p1 winter side of the fold", P1, "p1/gw/raw", dutch_at("261025023000W"), [accept(DUTCH_ID, "register", 3_580_000, "2026-10-25T01:30:00Z")]),
    Case("p1 fold without a flag", {**P1, "time": {"at": "0-0:1.0.0", "format": "dsmr", "zone": "Europe/Amsterdam"}}, "p1/gw/raw", dutch_at("261025023000"), [reject("bad_time")]),
    Case("p1 clock that was never set", P1, "p1/gw/raw", dutch_at("700101000000W"), [accept(DUTCH_ID, "register", 3_580_000)]),
    Case("p1 without time and check sum", P1, "p1/gw/raw", p1(*DUTCH[2:], checked=False), [accept(DUTCH_ID, "register", 3_580_000)]),
    Case("p1 bad check sum", P1, "p1/gw/raw", p1(*DUTCH).replace(b"002345", b"002346"), [reject("undecodable")]),
    Case("p1 line ends changed on the way", P1, "p1/gw/raw", p1(*DUTCH).replace(b"\r\n", b"\n"), [accept(DUTCH_ID, "register", 3_580_000, "2026-07-04T10:15:00Z")]),
    Case("p1 half a telegram", P1, "p1/gw/raw", p1(*DUTCH)[:150], [reject("undecodable")]),
    Case("p1 two telegrams mixed", P1, "p1/gw/raw", b"1-0:1.8.1(0" + p1(*DUTCH), [reject("undecodable")]),
    Case("p1 heat gateway", P1, "p1/gw/raw", p1("0-0:96.1.1(41)", "0-1:24.2.1(260704121500S)(1.5*GJ)"), [ignore("missing_field")]),
    Case("p1 in Wh", {"preset": "p1-sweden", "topic": "p1/{meter}"}, "p1/at", p1("0-0:1.0.0(261006155014S)", "1-0:1.8.0(006000766*Wh)"), [accept("at", "register", 6_000_766, "2026-10-06T13:50:14Z")]),
    Case("p1-sweden", {"preset": "p1-sweden", "topic": "{meter}/raw"}, "se1/raw", p1(*SWEDISH), [accept("se1", "register", 12_345_678, "2026-07-04T11:15:00Z")]),
    Case("p1-sweden as hex digits", {"preset": "p1-sweden", "topic": "{meter}/raw"}, "se1/raw", p1(*SWEDISH).hex().upper().encode(), [accept("se1", "register", 12_345_678, "2026-07-04T11:15:00Z")]),
    Case("p1 steps hex", {"preset": "p1-sweden", "topic": "{meter}/raw", "steps": "hex"}, "se1/raw", p1(*SWEDISH).hex().encode(), [accept("se1", "register", 12_345_678, "2026-07-04T11:15:00Z")]),
    Case("p1 steps base64", {"preset": "p1-sweden", "topic": "{meter}/raw", "steps": "base64"}, "se1/raw", base64.b64encode(p1(*SWEDISH)), [accept("se1", "register", 12_345_678, "2026-07-04T11:15:00Z")]),
    Case("p1 hex cut short", {"preset": "p1-sweden", "topic": "{meter}/raw"}, "se1/raw", p1(*SWEDISH).hex().encode()[:120], [reject("undecodable")]),
    Case("p1 steps without a frame", {"preset": "p1-sweden", "topic": "{meter}/raw", "steps": "cut7e"}, "se1/raw", b'{"status":{"rssi":-60}}', [reject("undecodable")]),
    Case("d0", {"preset": "d0", "topic": "d0/raw", "meter": ["0-0:96.1.255", "ident"]}, "d0/raw", b"/ABC5Q3 V3\r\n\r\n1-0:1.8.0*255(00052000.1234567*kWh)\r\n0-0:96.1.255*255(1ABC77)\r\n!\r\n 99\xff\xff", [accept("1ABC77", "register", 52_000_123.457)]),
    plain("homewizard", "homewizard", "homewizard/{meter}/data", "homewizard/p1/data", b'{"total_power_import_kwh":4002.5,"total_power_import_t1_kwh":4000,"active_power_w":-31,"active_power_l2_w":null}', accept("p1", "register", 4_002_500)),
    plain("homewizard-power", "homewizard-power", "homewizard/{meter}/data", "homewizard/p1/data", b'{"active_power_w":-31,"active_power_l2_w":null}', accept("p1", "power", -31)),
    plain("homewizard-v2", "homewizard-v2", "homewizard/{meter}/data", "homewizard/p2/data", b'{"energy_import_kwh":77.125,"energy_export_kwh":1,"power_w":-31}', accept("p2", "register", 77_125)),
    plain("homewizard-v2-power", "homewizard-v2-power", "homewizard/{meter}/data", "homewizard/p2/data", b'{"energy_import_kwh":77.125,"power_w":-31}', accept("p2", "power", -31)),
    Case("senml of several moments", {"preset": "senml", "topic": "m/{meter}", "value": "urn:x/p", "quantity": "power"}, "m/a", b'[{"bn":"urn:x/","bt":1780000000,"bu":"W","n":"p","v":5},{"n":"p","v":6,"t":10},{"n":"q","v":1,"t":20}]', [accept("a", "power", 5, "2026-05-28T20:26:40Z"), accept("a", "power", 6, "2026-05-28T20:26:50Z")]),
    plain("homewizard null phase", "homewizard-power", "homewizard/{meter}/data", "homewizard/p1/data", b'{"l1":4,"l2":null}', reject("wrong_type"), value=["/l1", "/l2"]),
    Case("amsreader", AMS, "amsleser", AMS_LIST_3, [accept("7359990000000001", "register", 9_876_540, MOMENT)]),
    Case("amsreader-power", AMS_POWER, "amsleser", AMS_LIST_3, [accept("AA:BB:CC:00:11:22", "power", 1_500, "2026-05-28T20:26:43Z")]),
    Case("amsreader list 1 has no register", AMS, "amsleser", b'{"id":"AA:BB:CC:00:11:22","t":1780000003,"data":{"P":1500}}', [ignore("missing_field")]),
    Case("amsreader without a clock", AMS_POWER, "amsleser", b'{"id":"AA:BB:CC:00:11:22","t":0,"data":{"P":1500}}', [accept("AA:BB:CC:00:11:22", "power", 1_500)]),
    plain("amsreader-split", "amsreader-split", "{meter}/meter/import/active/accumulated", "ams/meter/import/active/accumulated", b"9876.540", accept("ams", "register", 9_876_540)),
    plain("amis", "amis", "amis/out", "amis/out", b'{"1.8.0":1234567,"1.7.0":812,"2.7.0":0,"time":1780000000,"serialnumber":"0433"}', accept("0433", "register", 1_234_567, MOMENT)),
    plain("amis-power", "amis-power", "amis/out", "amis/out", b'{"1.7.0":812,"2.7.0":12,"time":1780000000,"serialnumber":"0433"}', accept("0433", "power", 800, MOMENT)),
    Case("glow", GLOW, GLOW_TOPIC, glow(), [accept("A1B2C3D4E5F6", "register", 4_321_125, "2026-02-03T04:05:06Z")]),
    Case("glow zero while the link is down", GLOW, GLOW_TOPIC, glow(0.0), [accept("A1B2C3D4E5F6", "register", 0, "2026-02-03T04:05:06Z")]),
    Case("glow in another unit", GLOW, GLOW_TOPIC, glow(units="m3"), [reject("undeclared_unit")]),
    Case("glow-power", GLOW_POWER, GLOW_TOPIC, glow(), [accept("A1B2C3D4E5F6", "power", 444, "2026-02-03T04:05:06Z")]),
    Case("glow-power sentinel", GLOW_POWER, GLOW_TOPIC, glow(power=-8388.608), [reject("sentinel")]),
    plain("rtl_433", "rtl_433", "rtl_433/+/events", "rtl_433/pi/events", b'{"time":"2026-01-02 03:04:05","model":"ERT-SCM","id":505,"consumption_data":77001}', accept("505", "register", 770_010), value="/consumption_data", unit="Wh", scale=10, quantity="register", when={"/model": "ERT-SCM"}),
    plain("rtl_433 other model", "rtl_433", "rtl_433/+/events", "rtl_433/pi/events", b'{"model":"Oregon","id":505,"temperature_C":4}', ignore("guard"), value="/consumption_data", unit="Wh", quantity="register", when={"/model": "ERT-SCM"}),
    plain("rtl_433-currentcost", "rtl_433-currentcost", "rtl_433/+/events", "rtl_433/pi/events", b'{"model":"CurrentCost-TX","id":77,"power0_W":310,"power1_W":0,"power2_W":9}', accept("77", "power", 319)),
    plain("rtl_433-efergy-optical", "rtl_433-efergy-optical", "rtl_433/+/events", "rtl_433/pi/events", b'{"model":"Efergy-Optical","id":9,"pulses":1000,"energy_kWh":0.72}', accept("9", "power", 720)),
    plain("rtl_433 other pulses", "rtl_433-efergy-optical", "rtl_433/+/events", "rtl_433/pi/events", b'{"model":"Efergy-Optical","id":9,"pulses":3200,"energy_kWh":0.225}', ignore("guard")),
    Case("rtlamr", RTLAMR, "rtlamr", IDM, [accept("44556677", "register", 3_001_230, "2026-05-05T06:07:08.123Z")]),
    plain("rtlamr-scm", "rtlamr-scm", "rtlamr", "rtlamr", b'{"Time":"2026-05-05T06:07:08Z","Type":"SCM","Message":{"ID":8080,"Type":7,"Consumption":206}}', accept("8080", "register", 2_060, "2026-05-05T06:07:08Z")),
    plain("rtlamr-scm gas", "rtlamr-scm", "rtlamr", "rtlamr", b'{"Time":"2026-05-05T06:07:08Z","Type":"SCM","Message":{"ID":8080,"Type":12,"Consumption":206}}', ignore("guard")),
    plain("rtlamr leading zeros", "rtlamr-scm", "rtlamr", "rtlamr", b'{"Time":"2026-05-05T06:07:08Z","Type":"SCM","Message":{"ID":0080,"Type":7,"Consumption":2}}', reject("undecodable")),
    plain("rtlamr-scm-plus", "rtlamr-scm-plus", "rtlamr", "rtlamr", b'{"Time":"2026-05-05T06:07:08Z","Type":"SCM+","Message":{"EndpointID":9090,"EndpointType":8,"Consumption":31}}', accept("9090", "register", 310, "2026-05-05T06:07:08Z")),
    Case("wmbusmeters", WMBUS, "wmbusmeters/My meter", b'{"media":"electricity","id":"00012345","total_energy_consumption_kwh":88.25,"timestamp":"2026-05-28T20:26:40Z"}', [accept("00012345", "register", 88_250, MOMENT)]),
    Case("wmbusmeters clock of its test vectors", WMBUS, "wmbusmeters/x", b'{"media":"electricity","id":"00012345","total_energy_consumption_kwh":88.25,"timestamp":"1111-11-11T11:11:11Z"}', [accept("00012345", "register", 88_250)]),
    Case("wmbusmeters other telegram", WMBUS, "wmbusmeters/x", b'{"media":"electricity","id":"00012345","location":"AA","timestamp":"2026-05-28T20:26:40Z"}', [ignore("missing_field")]),
    Case("wmbusmeters water", WMBUS, "wmbusmeters/x", b'{"media":"water","id":"5","total_m3":3}', [ignore("guard")]),
    plain("wmbusmeters-power", "wmbusmeters-power", "wmbusmeters/+", "wmbusmeters/x", b'{"media":"electricity","id":"5","current_power_consumption_kw":0.69,"current_power_production_kw":1.5,"timestamp":"2026-05-28T20:26:40Z"}', accept("5", "power", -810, MOMENT), minus="/current_power_production_kw"),
    plain("wmbusmeters local time with a blank", "wmbusmeters", "wmbusmeters/+", "wmbusmeters/x", b'{"media":"electricity","id":"5","total_energy_consumption_kwh":1,"device_date_time":"2026-04-03 11:29:55"}', accept("5", "register", 1_000, "2026-04-03T09:29:55Z"), time={"at": "/device_date_time", "zone": "Europe/Warsaw"}),
    Case("victron", {"preset": "victron"}, "N/aabbccddeeff/grid/31/Ac/Energy/Forward", b'{"max":null,"value":301.75}', [accept("aabbccddeeff", "register", 301_750)]),
    Case("victron-power", {"preset": "victron-power"}, "N/aabbccddeeff/grid/31/Ac/Power", b'{"value":-936}', [accept("aabbccddeeff", "power", -936)]),
    Case("victron lost its meter", {"preset": "victron-power"}, "N/aabbccddeeff/grid/31/Ac/Power", b'{"value":null}', [reject("wrong_type")]),
    plain("openems", "openems", "edge/{meter}/channel/_sum/GridBuyActiveEnergy", "edge/edge3/channel/_sum/GridBuyActiveEnergy", b"7001", accept("edge3", "register", 7_001)),
    plain("openems-power", "openems-power", "edge/{meter}/channel/_sum/GridActivePower", "edge/edge3/channel/_sum/GridActivePower", b"-2500", accept("edge3", "power", -2_500)),
    plain("emon", "emon", "emon/{meter}", "emon/pi", b'{"E1":501,"time":1780000000}', accept("pi", "register", 501, MOMENT), value="/E1"),
    plain("emon-power", "emon-power", "emon/{meter}", "emon/pi", b'{"power":11.5}', accept("pi", "power", 11.5)),
    plain("emonhub", "emonhub", "emonhub/rx/{meter}/values", "emonhub/rx/12/values", b"100,200,4500,-70", accept("12", "register", 4_500), value="2"),
    plain("emonhub-power", "emonhub-power", "emonhub/rx/{meter}/values", "emonhub/rx/12/values", b"100, 200,300,-70", accept("12", "power", 300), value=["0", "1"]),
    plain("emonhub short record", "emonhub-power", "emonhub/rx/{meter}/values", "emonhub/rx/12/values", b"100", ignore("missing_field"), value="5"),
    plain("vzlogger", "vzlogger", "vzlogger/data/{meter}/agg", "vzlogger/data/chn2/agg", b'{ "timestamp": 1780000000250, "value": 51000.5 }', accept("chn2", "register", 51_000.5, "2026-05-28T20:26:40.250Z")),
    plain("vzlogger-power", "vzlogger-power", "vzlogger/data/{meter}/agg", "vzlogger/data/chn3/agg", b'{ "timestamp": 1780000000250, "value": 51 }', accept("chn3", "power", 51, "2026-05-28T20:26:40.250Z")),
    plain("vzlogger-plain", "vzlogger-plain", "vzlogger/data/{meter}/raw", "vzlogger/data/chn2/raw", b"51000.500000", accept("chn2", "register", 51_000.5)),
    plain("vzlogger announces its register", "vzlogger-plain", "vzlogger/data/{meter}/id", "vzlogger/data/chn2/id", b"1-0:1.8.0", reject("undecodable")),
    plain("sml2mqtt", "sml2mqtt", "sml2mqtt/{meter}/0100010800ff", "sml2mqtt/0a01/0100010800ff", b"100917.7", accept("0a01", "register", 100_917.7)),
    plain("sml2mqtt-power", "sml2mqtt-power", "sml2mqtt/{meter}/0100100700ff", "sml2mqtt/0a01/0100100700ff", b"55", accept("0a01", "power", 55)),
    plain("smlreader", "smlreader", "smartmeter/{meter}/sensor/1/obis/1-0:1.8.0/255/value", "smartmeter/mains/sensor/1/obis/1-0:1.8.0/255/value", b"700100.5", accept("mains", "register", 700_100.5)),
    plain("smlreader-power", "smlreader-power", "smartmeter/{meter}/sensor/1/obis/1-0:16.7.0/255/value", "smartmeter/mains/sensor/1/obis/1-0:16.7.0/255/value", b"12.0", accept("mains", "power", 12)),
    plain("solaredge2mqtt", "solaredge2mqtt", "solaredge/modbus/meter/+", "solaredge/modbus/meter/meter0", b'{"info":{"serialnumber":"aa11"},"power":{"actual":-3.0},"energy":{"totalimport":70001.0}}', accept("aa11", "register", 70_001)),
    plain("solaredge2mqtt-power turns the sign", "solaredge2mqtt-power", "solaredge/modbus/meter/+", "solaredge/modbus/meter/meter0", b'{"info":{"serialnumber":"aa11"},"power":{"actual":-3.0}}', accept("aa11", "power", 3)),
    plain("sma-em", "sma-em", "SMA-EM/status", "SMA-EM/status", b'{"pconsume":0,"pconsumecounter":3100.5,"psupply":1215.5,"timestamp":1780000000.25}', accept("home", "register", 3_100_500, "2026-05-28T20:26:40.250Z"), meter="=home"),
    plain("sma-em-power", "sma-em-power", "SMA-EM/status", "SMA-EM/status", b'{"pconsume":0,"psupply":1215.5,"timestamp":1780000000.25}', accept("home", "power", -1_215.5, "2026-05-28T20:26:40.250Z"), meter="=home"),
    plain("enphase-power", "enphase-power", "/{meter}/json", "/envoy/json", b'{"meters":{"last_update":1780000000,"grid":{"agg_p_mw":585180}}}', accept("envoy", "power", 585.18, MOMENT)),
    plain("enphase-phases-power", "enphase-phases-power", "/{meter}/json", "/envoy/json", b'{"net-consumption":{"ph-a":{"p":21.5},"ph-b":{"p":0.0},"ph-c":{"p":-1.25}}}', accept("envoy", "power", 20.25)),
    plain("scs", "scs", "smartmeter/{meter}/ACTIVE_ENERGY_P", "smartmeter/LGZ9/ACTIVE_ENERGY_P", b'{"value":812345,"timestamp":1780000000}', accept("LGZ9", "register", 812_345, MOMENT)),
    plain("scs-power", "scs-power", "smartmeter/{meter}/ACTIVE_POWER_P", "smartmeter/LGZ9/ACTIVE_POWER_P", b'{"value":12,"timestamp":1780000000}', accept("LGZ9", "power", 12, MOMENT)),
    plain("scs-bundle", "scs-bundle", "dt/+/{meter}/ds", "dt/g1/LGZ9/ds", b'{"meter":{"ts":"2026-05-28T22:26:40+02:00","1.8.0":482000,"1.7.0":28,"2.7.0":3}}', accept("LGZ9", "register", 482_000, MOMENT)),
    plain("scs-bundle-power", "scs-bundle-power", "dt/+/{meter}/ds", "dt/g1/LGZ9/ds", b'{"meter":{"ts":"2026-05-28T22:26:40+02:00","1.7.0":28,"2.7.0":3}}', accept("LGZ9", "power", 25, MOMENT)),
    plain("ha-statestream", "ha-statestream", "homeassistant/sensor/{meter}/state", "homeassistant/sensor/grid_energy/state", b"4004.004", accept("grid_energy", "register", 4_004_004)),
    plain("ha-statestream-power", "ha-statestream-power", "homeassistant/sensor/{meter}/state", "homeassistant/sensor/grid_power/state", b"404", accept("grid_power", "power", 404)),
    plain("home assistant unavailable", "ha-statestream", "homeassistant/sensor/{meter}/state", "homeassistant/sensor/grid_energy/state", b"unavailable", reject("undecodable")),
    plain("home assistant discovery", "ha-statestream", "homeassistant/sensor/{meter}/config", "homeassistant/sensor/x/config", b'{"device_class":"energy","state_topic":"x"}', reject("undecodable")),
    Case("sparkplug data after its birth", SPARKPLUG, DDATA, sparkplug(field(2, 5) + field(10, 2**32 - 12)), [accept("m7", "power", -12, MOMENT)], before=((DBIRTH, BIRTH),)),
    Case("sparkplug a birth is a reading", SPARKPLUG, DBIRTH, BIRTH, [accept("m7", "power", 100, MOMENT)]),
    Case("sparkplug is_null", SPARKPLUG, DDATA, sparkplug(field(2, 5) + field(7, 1)), [reject("wrong_type")], before=((DBIRTH, BIRTH),)),
    Case("sparkplug data before its birth", SPARKPLUG, DDATA, sparkplug(field(2, 5) + field(10, 1)), [reject("birth_needed")]),
    Case("sparkplug metric of its own time", SPARKPLUG, DDATA, sparkplug(field(2, 5) + field(3, 1_780_000_000_500) + field(10, 1)), [accept("m7", "power", 1, "2026-05-28T20:26:40.500Z")], before=((DBIRTH, BIRTH),)),
    Case("sparkplug after the death", SPARKPLUG, DDATA, sparkplug(field(2, 5) + field(10, 1)), [reject("birth_needed")], before=((DBIRTH, BIRTH), (DBIRTH.replace("DBIRTH", "DDEATH"), sparkplug()))),
    Case("sparkplug node's birth", SPARKPLUG, "spBv1.0/site/NBIRTH/node1", sparkplug(field(1, b"bdSeq") + field(4, 8) + field(11, 1)), [ignore("guard")]),
    Case("sparkplug other metric", SPARKPLUG, DDATA, sparkplug(field(2, 6) + field(11, 5)), [ignore("missing_field")], before=((DBIRTH, BIRTH),)),
    Case("senml", {**SENML, "value": "urn:dev:mac:01/import"}, "meters/m9/senml", b'[{"bn":"urn:dev:mac:01/","bt":1780000000,"n":"power","u":"W","v":400},{"n":"import","u":"kWh","v":830.25}]', [accept("m9", "register", 830_250, MOMENT)]),
    Case("senml sum", {**SENML, "value": "m9/power|s"}, "meters/m9/senml", b'[{"bn":"m9/","n":"power","u":"W","v":4,"s":7200000}]', [accept("m9", "register", 2_000)]),
    Case("senml cbor", {**SENML, "value": "m9/import"}, "meters/m9/senml", cbor2.dumps([{-2: "m9/", -3: 1_780_000_000, 0: "import", 1: "Wh", 2: 4_242}]), [accept("m9", "register", 4_242, MOMENT)]),
    Case("senml without a unit", {**SENML, "value": "m9/import"}, "meters/m9/senml", b'[{"n":"m9/import","v":5}]', [reject("undeclared_unit")]),
    Case("senml power where energy is due", {**SENML, "value": "m9/power"}, "meters/m9/senml", b'[{"n":"m9/power","u":"W","v":5}]', [reject("undeclared_unit")]),
    Case("tts", TTS, "v3/app@t/devices/d1/up", packed(end_device_ids={"dev_eui": "70B3D500"}, received_at="2026-05-28T20:26:40.123456789Z", uplink_message={"decoded_payload": {"energy_kwh": 301.5}}), [accept("70B3D500", "register", 301_500, "2026-05-28T20:26:40.123Z")]),
    Case("tts without a formatter", TTS, "v3/app@t/devices/d1/up", packed(end_device_ids={"dev_eui": "70B3D500"}, received_at="2026-05-28T20:26:40Z", uplink_message={"frm_payload": "AQI="}), [ignore("missing_field")]),
    Case("chirpstack", {"preset": "chirpstack", "value": "/object/energy_wh", "unit": "Wh", "quantity": "register"}, "application/7f/device/0a0b/event/up", packed(time="2026-05-28T20:26:40.000000242+00:00", object={"energy_wh": 5_000.5}), [accept("0a0b", "register", 5_000.5, MOMENT)]),
    Case("azure", {"preset": "azure", "value": "/wh", "unit": "Wh", "quantity": "register"}, "devices/m-1/messages/events/$.ct=application%2Fjson&$.ce=utf-8", packed(wh=77_001), [accept("m-1", "register", 77_001)]),
    Case("wienernetze winter", VIENNA, "dlms/v1/raw", vienna(WINTER_CLOCK), [accept("v1", "register", 7_654_321, "2025-12-01T07:30:00Z")]),
    Case("wienernetze summer", VIENNA, "dlms/v1/raw", vienna(SUMMER_CLOCK), [accept("v1", "register", 7_654_321, "2025-06-01T06:30:00Z")]),
    Case("wienernetze-power", {**VIENNA, "preset": "wienernetze-power"}, "dlms/v1/raw", vienna(WINTER_CLOCK), [accept("v1", "power", 600, "2025-12-01T07:30:00Z")]),
    Case("wienernetze another meter's structure", VIENNA, "dlms/v1/raw", axdr(b"\x12\x00\xe6", double_long(226)), [reject("bad_time")]),
    Case("axdr cut short", VIENNA, "dlms/v1/raw", vienna(WINTER_CLOCK)[:-2], [reject("undecodable")]),
    Case("axdr id in octets", {"topic": "dlms/+/raw", "format": "axdr", "value": "/0", "unit": "Wh", "quantity": "register", "meter": "/1"}, "dlms/x/raw", axdr(double_long(5_000), b"\x09\x0430AB"), [accept("30AB", "register", 5_000)]),
    number("number comma by default", b"2,32", reject("not_a_number")),
    number("number comma declared", b"2,32", accept("n1", "register", 2_320), decimal=","),
    number("number with blanks", b" 2.32\r\n", accept("n1", "register", 2_320)),
    number("number with an error glued on", b"135.9\tRate too high - Read: 136.8", reject("undecodable")),
    number("number not read", b"00N7.0", reject("undecodable")),
    number("number thousands", b"1,234.5", reject("undecodable")),
    number("number negative register", b"-1", reject("implausible")),
    number("number too large register", b"1e12", reject("implausible")),
    number("number leading zeros", b"0002", accept("n1", "register", 2_000)),
    number("number empty", b"", ignore("empty")),
    number("number in another alphabet", "٣".encode(), reject("undecodable")),
    number("number too long a payload", b"1" * 9, reject("too_large"), max_bytes=8),
    json_case("json true is no number", b'{"v":true}', reject("wrong_type")),
    json_case("json text number", b'{"v":"12.5"}', accept("j1", "power", 12.5)),
    json_case("json text", b'{"v":"n/a"}', reject("not_a_number")),
    json_case("json boxed value", b'{"v":{"value":4}}', reject("wrong_type")),
    json_case("json boxed value addressed", b'{"v":{"value":4}}', accept("j1", "power", 4), value="/v/value"),
    json_case("json array of one", b'{"v":[{"value":1.674,"unit":"kW"}]}', accept("j1", "power", 1_674), value="/v/0/value", unit={"at": "/v/0/unit"}),
    json_case("json unit spelled out", b'{"v":4,"unit":"Watt"}', reject("undeclared_unit"), unit={"at": "/unit"}),
    json_case("json exponent pinned", b'{"v":7542,"scale":0}', accept("j1", "power", 7_542), when={"/scale": 0}),
    json_case("json exponent changed", b'{"v":7542,"scale":1}', ignore("guard"), when={"/scale": 0}),
    json_case("json beyond the connection", b'{"v":60000}', reject("implausible"), limit="17 kW"),
    json_case("json export", b'{"v":60}', accept("j1", "power", -60), sign="export"),
    json_case("json uptime is no time", b'{"v":6,"ts":"1321890"}', accept("j1", "power", 6), time={"at": "/ts", "format": "s"}),
    json_case("json time text", b'{"v":6,"ts":"soon"}', reject("bad_time"), time={"at": "/ts"}),
    json_case("json german time", b'{"v":6,"ts":"03.06.2026, 13:27:06"}', accept("j1", "power", 6, "2026-06-03T11:27:06Z"), time={"at": "/ts", "format": "%d.%m.%Y, %H:%M:%S", "zone": "Europe/Berlin"}),
    json_case("json hour that never was", b'{"v":6,"ts":"2026-03-29T02:30:00"}', reject("bad_time"), time={"at": "/ts", "zone": "Europe/Berlin"}),
    json_case("json empty id", b'{"v":6,"id":" "}', reject("no_meter"), meter="/id"),
    json_case("json id too long", packed(v=6, id="x" * 129), reject("no_meter"), meter="/id"),
    json_case("json id is a list", b'{"v":6,"id":[1]}', reject("no_meter"), meter="/id"),
    json_case("json constant meter", b'{"v":6}', accept("house", "power", 6), meter="=house"),
    json_case("json deep lists", b'{"v":' + b"[" * 900 + b"]" * 900 + b"}", reject("wrong_type")),
    interval("interval", b'{"wh":250.5,"ts":"2026-05-28T20:30:00Z"}', accept("i1", "interval", 250.5, "2026-05-28T20:30:00Z")),
    interval("interval stamped at its end", b'{"wh":250,"ts":1780000200}', accept("i1", "interval", 250, "2026-05-28T20:00:00Z"), stamp="end"),
    interval("interval five minutes", b'{"wh":-26,"ts":"2026-05-28T20:34:59.9Z"}', accept("i1", "interval", -26, "2026-05-28T20:35:00Z"), interval="5min"),
    interval("interval off its border", b'{"wh":250,"ts":"2026-05-28T20:37:00Z"}', reject("misaligned")),
    interval("interval without a time", b'{"wh":250}', ignore("missing_field")),
    interval("interval of a clock never set", b'{"wh":250,"ts":0}', reject("bad_time")),
    Case("feeder", FEEDER, "feeder/f1", b'{"ts":1780000000,"meters":[{"id":"a","kwh":1.5},{"id":"b","kwh":null},{"id":"c"},{"kwh":2},{"id":"d","kwh":"3.25"}]}', [accept("a", "register", 1_500, MOMENT), reject("wrong_type"), ignore("missing_field"), reject("no_meter"), accept("d", "register", 3_250, MOMENT)]),
    Case("feeder by key", {**FEEDER, "meter": "{feeder}-{key}"}, "feeder/f1", b'{"ts":1780000000,"meters":{"L1":{"kwh":1},"L2":{"kwh":2}}}', [accept("f1-L1", "register", 1_000, MOMENT), accept("f1-L2", "register", 2_000, MOMENT)]),
    Case("feeder without meters", FEEDER, "feeder/f1", b'{"ts":1780000000}', [ignore("missing_field")]),
    Case("feeder with a number for its meters", FEEDER, "feeder/f1", b'{"meters":5}', [reject("wrong_type")]),
    Case("feeder of too many", FEEDER, "feeder/f1", packed(meters=[0] * 1_001), [reject("too_large")]),
]  # fmt: skip
"""By name; times are UTC, values W and Wh, reasons the metric's names."""
