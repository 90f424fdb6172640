package keyfile

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestParseAgent(t *testing.T) {
	var cases []struct {
		Agent  string
		String *string // Signature-Agent as a string; nil: a mistake
	}
	data, err := os.ReadFile("testdata/agent.json")
	if err == nil {
		err = json.Unmarshal(data, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatal(err, len(cases))
	}
	for _, c := range cases {
		got, err := ParseAgent(c.Agent)
		switch {
		case c.String == nil && err == nil:
			t.Errorf("%q: got %q, want a mistake", c.Agent, got)
		case c.String == nil && strings.ContainsAny(err.Error(), "\r\n\x00"):
			t.Errorf("%q: the mistake %q repeats a control character", c.Agent, err)
		case c.String != nil && (err != nil || fmt.Sprintf("%q", got) != *c.String):
			t.Errorf("%q: got %q, %v, want %s", c.Agent, got, err, *c.String)
		}
	}
	for _, text := range []string{
		"https://bots.example.com:+443", "https://bots.example.com:8443x", "https://2001:db8::1", "https://[::1", "https://::1]", "https://[bots.example.com]",
		"https://[2001:db8::1]x", "https://[fe80::1%25eth0]", "https://bots.example.com//", "https://0x7f.1", "https://a%2fb.example", "https://\u202e.example", "https://bots.example.com\u00a0",
	} {
		if got, err := ParseAgent(text); err == nil {
			t.Errorf("%q: got %q, want a mistake", text, got)
		}
	}
}
