package recordjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recordjson"
)

// Encoding and decoding returns the same events, for random events.
func TestEventsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		want := make(recordjson.Events, rng.IntN(40))
		at := time.Duration(rng.Int64N(1 << 50))
		for i := range want {
			at += time.Duration(rng.Int64N(1<<30) - 1<<10) // a wall clock may step back
			want[i] = tacho.Event{At: at}
			if rng.IntN(2) == 0 {
				want[i].ReadLag = rng.Int32() - rng.Int32()
			}
			if rng.IntN(3) == 0 {
				want[i].Tokens = int16(rng.IntN(9))
			}
			want[i].Kind = tacho.TokenKind(rng.IntN(3))
			want[i].Slack = tacho.Slack(rng.IntN(4) / 3 * rng.IntN(256))
		}
		b := must.Get(json.Marshal(want))(t)
		var got recordjson.Events
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%s: %s", b, d)
		}
	}
}

// A stream without special values is stored as its times alone.
func TestEventsAreSmall(t *testing.T) {
	b, err := json.Marshal(recordjson.Events{{At: 100}, {At: 150}, {At: 175}})
	if got, want := string(b), `{"at_ns":[100,50,25]}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}

func TestEventsDamage(t *testing.T) {
	for text, want := range map[string]string{
		`{"at_ns":[1,2],"tokens":[1]}`:                    "tokens has 1 values for 2 times",
		`{"at_ns":[1],"tokens":[99999]}`:                  "tokens: 99999 is out of range",
		`{"at_ns":[1,2.5]}`:                               "is not a list of whole numbers",
		`{"at_ns":"12"}`:                                  "is not a list of whole numbers",
		`{"at_ns":[1,2],"coalesced":[2],"slack_ns":[9]}`:  "coalesced event 2 of 2",
		`{"at_ns":[1,2],"coalesced":[-1],"slack_ns":[9]}`: "coalesced event -1 of 2",
		`[]`: "not columns of numbers",
	} {
		var es recordjson.Events
		if err := json.Unmarshal([]byte(text), &es); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"at_ns":[1,2],"kind":[1,0],"read_lag":[5,6]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var es, again recordjson.Events
		if json.Unmarshal(b, &es) != nil {
			return
		}
		out, err := json.Marshal(es)
		if err != nil || json.Unmarshal(out, &again) != nil || !cmp.Equal(es, again) {
			t.Errorf("%s became %s, %v", b, out, err)
		}
	})
}

func TestClockText(t *testing.T) {
	var c recordjson.Clock
	if err := c.UnmarshalText([]byte("read")); err != nil || tacho.Clock(c) != tacho.ReadClock {
		t.Errorf("%v, %v", tacho.Clock(c), err)
	}
	if err := c.UnmarshalText([]byte("sun")); err == nil {
		t.Error("a sundial was taken for a clock")
	}
}

// Labels are one JSON object, in their order.
func TestLabelsBothWays(t *testing.T) {
	ls := recordjson.Labels{{Key: "z", Value: "1"}, {Key: "a", Value: "\"x"}}
	b, err := json.Marshal(ls)
	if want := `{"z":"1","a":"\"x"}`; err != nil || string(b) != want {
		t.Errorf("%s, %v, not %s", b, err, want)
	}
	var again recordjson.Labels
	if err := json.Unmarshal(b, &again); err != nil || !slices.Equal(ls, again) {
		t.Errorf("%v, %v", again, err)
	}
}

// hostileRecord contains the name of the events in every text.
func hostileRecord(events tacho.Events) *tacho.Record {
	const trap = `x"events":{"at_ns":[7]}`
	r := &tacho.Record{
		Session: 3, ID: trap, Text: trap + "\n", Labels: tacho.Labels{{Key: trap, Value: trap}, {Key: `events`, Value: `{}`}, {Key: `a"events`, Value: "b"}},
		Timeline: tacho.NewTimeline(5), Failure: &tacho.Failure{Cause: tacho.Reset, Message: trap}, Usage: &tacho.Usage{Prompt: 9},
	}
	r.Opening, r.Events = events, events
	return r
}

// plainTypes are the types with a JSON form that differs from their fields.
var plainTypes = map[reflect.Type]reflect.Type{
	reflect.TypeFor[tacho.Events](): reflect.TypeFor[recordjson.Events](),
	reflect.TypeFor[tacho.Labels](): reflect.TypeFor[recordjson.Labels](),
	reflect.TypeFor[tacho.Clock]():  reflect.TypeFor[recordjson.Clock](),
}

// referenceType is a struct with all fields of a record, in their order, for encoding/json alone.
var referenceType = func() reflect.Type {
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(reflect.TypeFor[tacho.Record]()) {
		if f.Anonymous {
			continue
		}
		if plain := plainTypes[f.Type]; plain != nil {
			f.Type = plain
		}
		f.Index, f.Offset = nil, 0
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}()

// reference returns a record as a value of referenceType.
func reference(r *tacho.Record) any {
	v := reflect.New(referenceType).Elem()
	for f, field := range v.Fields() {
		field.Set(reflect.ValueOf(r).Elem().FieldByName(f.Name).Convert(f.Type))
	}
	return v.Interface()
}

// byReference parses a record with encoding/json alone.
func byReference(line []byte) (tacho.Record, error) {
	var r tacho.Record
	v := reflect.New(referenceType)
	err := json.Unmarshal(line, v.Interface())
	for f, field := range v.Elem().Fields() {
		to := reflect.ValueOf(&r).Elem().FieldByName(f.Name)
		to.Set(field.Convert(to.Type()))
	}
	return r, err
}

// Encode writes the same bytes as json.Marshal, and Decode reads the same record as json.Unmarshal.
func TestRecordByHand(t *testing.T) {
	for _, events := range []tacho.Events{nil, {{At: 5}}, {{At: 100, ReadLag: -3}, {At: 150, Kind: tacho.Reasoning}, {At: 175, Slack: 7}}} {
		r := hostileRecord(events)
		want := must.Get(json.Marshal(reference(r)))(t)
		line, err := recordjson.Encode(r)
		if err != nil || string(line) != string(want) {
			t.Errorf("wrote %s, %v\nwant  %s", line, err, want)
		}
		var byHand tacho.Record
		byJSON, failed := byReference(line)
		must.Do(t, errors.Join(recordjson.Decode(line, &byHand), failed))
		if d := cmp.Diff(byJSON, byHand); d != "" || len(byHand.Events) != len(events) {
			t.Errorf("-by json +by hand\n%s", d)
		}
	}
}

// Encode writes the same bytes as json.Marshal for all optional fields and all ranges of numbers.
func TestEveryFieldByHand(t *testing.T) {
	check := func(name string, r *tacho.Record) {
		t.Helper()
		want, err := json.Marshal(reference(r))
		line, failed := recordjson.Encode(r)
		if err != nil || failed != nil || string(line) != string(want) {
			t.Errorf("%s: wrote %s, %v\nwant  %s, %v", name, line, failed, want, err)
		}
	}
	for i := range reflect.TypeFor[tacho.Record]().NumField() {
		for _, text := range []string{"plain", `"`, "<", "\n", "é", `\`} {
			r := &tacho.Record{Timeline: tacho.NewTimeline(7)}
			set(reflect.ValueOf(r).Elem().Field(i), text)
			check(reflect.TypeFor[tacho.Record]().Field(i).Name, r)
		}
	}
	line := reflect.TypeFor[tacho.Timeline]()
	for i := range line.NumField() {
		r := &tacho.Record{}
		set(reflect.ValueOf(&r.Timeline).Elem().Field(i), "")
		check(line.Field(i).Name, r)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	r := &tacho.Record{Session: math.MaxUint64, Usage: &tacho.Usage{}, Server: &tacho.ServerTimes{}}
	for power := int64(1); power > 0 && power < 1e18; power *= 10 {
		for _, n := range []int64{power - 1, power, power + 1, -power, rng.Int64N(power), rng.Int64N(9*power) + power} {
			r.Events = append(r.Events, tacho.Event{At: r.Last() + time.Duration(n), Tokens: int16(n), ReadLag: int32(n)})
		}
	}
	check("numbers", r)
}

// set changes a field, or all fields of a struct.
func set(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(1.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		set(v.Elem(), text)
	case reflect.Struct:
		for _, field := range v.Fields() {
			set(field, text)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		set(v.Index(0), text)
	case reflect.Uint8:
		v.SetUint(2)
	case reflect.Uint64:
		v.SetUint(17)
	default:
		v.SetInt(23)
	}
}

// Decode reads any line as json.Unmarshal does, or rejects it if json.Unmarshal rejects it.
func FuzzRecord(f *testing.F) {
	line, _ := recordjson.Encode(hostileRecord(tacho.Events{{At: 5}, {At: 7, Tokens: 2}}))
	f.Add(line)
	for _, text := range []string{
		`{"events": {"at_ns": [1, 2]}, "end_ns": 3}`, `{"events":null}`, `{"events":{}}`, `{"events":{"at_ns":[1]},"events":{"at_ns":[2]}}`,
		`{"events":{"at_ns":[1,]}}`, `{"events":{"at_ns":[1],}}`, `{"events":{"at_ns":[1}]}`, `{"events":{,"at_ns":[1]}}`, `{"events":{"at_ns":[--1]}}`, `{"events":{"at_ns":[1]"kind":[1]}}`,
		`{"stage":0,"session":7,"turn":0,"id":"a-7","input_tokens":128,"exact":true,"due_ns":-1,"sent_ns":40,"events":{"at_ns":[5,2],"tokens":[1,1]},"clock":"kernel","usage":{"prompt_tokens":128,"tells_cached":true},"finish":"length","server":{"queue_ns":9}}`,
		`{"stage":01}`, `{"session":-1}`, `{"stage":1,}`, `{,"stage":1}`, `{"stage":1}}`, `{"stage":1`, `{"id":"a\u0041"}`, `{"id":"é"}`, `{"id":"`, `{"usage":{}}`, `{"usage":{"prompt_tokens":1},"usage":{"completion_tokens":2}}`, `{"Stage":2,"stage":1}`, `{"stage":1,"Stage":2}`,
		`{"text":"events":{"at_ns":[1]}}`, `{"server":{"events":{"at_ns":[1]}}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var byHand tacho.Record
		hand := recordjson.Decode(b, &byHand)
		byJSON, plain := byReference(b)
		if (hand == nil) != (plain == nil) {
			t.Fatalf("%s: by hand %v, by json %v", b, hand, plain)
		}
		if hand == nil && !cmp.Equal(byHand, byJSON, cmpopts.EquateEmpty()) {
			t.Errorf("%s: %s", b, cmp.Diff(byJSON, byHand))
		}
	})
}

// Every coalesced event needs a slack.
func TestSlackOfEveryCoalescedEvent(t *testing.T) {
	for _, text := range []string{`{"at_ns":[5,6,7],"coalesced":[1]}`, `{"at_ns":[5,6,7],"coalesced":[1,2],"slack_ns":[9]}`} {
		var es recordjson.Events
		if err := json.Unmarshal([]byte(text), &es); err == nil {
			t.Errorf("%s: no error", text)
		}
	}
}
