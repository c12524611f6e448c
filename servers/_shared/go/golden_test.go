package netdyno

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"reflect"
	"regexp"
	"testing"
)

// Every vector of protocol/golden.json against the sessions, with the input sliced in many ways.

type vector struct {
	Name           string
	Workload       string
	Resolved       string
	Chunks         []string
	Ends           bool
	Effects        []map[string]any
	Requests       *uint64
	ProtocolErrors uint64 `json:"protocol_errors"`
}

// done is an effect in the words of golden.json.
type done struct {
	kind   string
	bytes  string
	parts  []string
	amount int64
}

func (v *vector) wanted(t *testing.T) []done {
	var all []done
	for _, effect := range v.Effects {
		for kind, value := range effect {
			one := done{kind: kind}
			switch value := value.(type) {
			case string:
				one.bytes = value
			case float64:
				one.amount = int64(value)
			case []any:
				for _, part := range value {
					one.parts = append(one.parts, part.(string))
				}
			case bool:
			default:
				t.Fatalf("an effect that is not known: %v", effect)
			}
			all = append(all, one)
		}
	}
	return all
}

// dates are the lines of http replies that differ with each second.
var dates = regexp.MustCompile("\r\nDate: .{29}\r\n")

func carriedOut(effects *Effects, split bool) []done {
	var all []done
	for _, effect := range effects.List {
		switch effect.Kind {
		case Write:
			all = append(all, done{kind: "write", bytes: hex.EncodeToString(dates.ReplaceAll(effects.Bytes(effect), []byte("\r\n")))})
		case Broadcast:
			parts := []string{hex.EncodeToString(effect.Frame)}
			if split {
				parts = []string{hex.EncodeToString(effect.Frame[:Header]), hex.EncodeToString(effect.Frame[Header:])}
			}
			all = append(all, done{kind: "broadcast", parts: parts})
		case Wait:
			all = append(all, done{kind: "wait", amount: int64(effect.Duration)})
		case Burn:
			all = append(all, done{kind: "burn", amount: int64(effect.Duration)})
		case Close:
			all = append(all, done{kind: "close"})
		}
	}
	return all
}

// joined: where a server read twice, it may write twice.
func joined(effects []done) []done {
	var all []done
	for _, effect := range effects {
		if last := len(all) - 1; last >= 0 && effect.kind == "write" && all[last].kind == "write" {
			all[last].bytes += effect.bytes
		} else {
			all = append(all, effect)
		}
	}
	return all
}

func (v *vector) expect(t *testing.T, slices [][]byte, how string) {
	t.Helper()
	options, err := ReadOptions(v.Resolved)
	if err != nil {
		t.Fatal(err)
	}
	var counts Shard
	session := NewSession(options, &counts)
	effects := NewEffects(options)
	var found []done
	for _, slice := range slices {
		buffer := append([]byte(nil), slice...)
		effects.Clear()
		session.Receive(buffer, effects)
		copy(buffer, bytes.Repeat([]byte("?"), len(buffer))) // as the next read does
		found = append(found, carriedOut(effects, options.Split)...)
	}
	if v.Ends {
		effects.Clear()
		session.End(effects)
		found = append(found, carriedOut(effects, options.Split)...)
	}
	wanted := v.wanted(t)
	if v.Workload == "echo" || !options.Split {
		found = joined(found)
	}
	if v.Workload == "echo" {
		wanted = joined(wanted)
	}
	if !reflect.DeepEqual(found, wanted) {
		t.Fatalf("%s: %v, want %v", how, found, wanted)
	}
	if errors := counts.ProtocolErrors.Load(); errors != v.ProtocolErrors {
		t.Fatalf("%s: %d protocol errors, want %d", how, errors, v.ProtocolErrors)
	}
	if requests := counts.Requests.Load(); v.Requests != nil && requests != *v.Requests {
		t.Fatalf("%s: %d requests, want %d", how, requests, *v.Requests)
	}
}

func cut(stream []byte, size func() int) [][]byte {
	var slices [][]byte
	for len(stream) > 0 {
		next := size()
		if next > len(stream) {
			next = len(stream)
		}
		slices = append(slices, stream[:next])
		stream = stream[next:]
	}
	return slices
}

func TestEveryGoldenVectorHoweverItIsSliced(t *testing.T) {
	text, err := os.ReadFile("../../../protocol/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct{ Vectors []vector }
	if err := json.Unmarshal(text, &golden); err != nil || len(golden.Vectors) < 50 {
		t.Fatal(err, len(golden.Vectors))
	}
	for i := range golden.Vectors {
		v := &golden.Vectors[i]
		t.Run(v.Name, func(t *testing.T) {
			var chunks [][]byte
			for _, chunk := range v.Chunks {
				raw, err := hex.DecodeString(chunk)
				if err != nil {
					t.Fatal(err)
				}
				chunks = append(chunks, raw)
			}
			stream := bytes.Join(chunks, nil)
			v.expect(t, chunks, "as given")
			v.expect(t, [][]byte{stream}, "in one piece")
			v.expect(t, cut(stream, func() int { return 1 }), "byte by byte")
			step := 1 + len(stream)/512 // every place, except in the few long streams
			for at := 1; at < len(stream); at++ {
				if at < 32 || at+32 > len(stream) || at%step == 0 {
					v.expect(t, [][]byte{stream[:at], stream[at:]}, fmt.Sprintf("cut at %d", at))
				}
			}
			random := rand.New(rand.NewSource(20250101))
			for round := 0; round < 20; round++ {
				longest := 1 + random.Intn(60)
				pieces := cut(stream, func() int { return 1 + random.Intn(longest) })
				v.expect(t, pieces, fmt.Sprintf("random pieces %d", round))
			}
		})
	}
}
