package header

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
)

// Every row of the table says what the header does and where that is known from, and is
// removed in every spelling.
func TestReroutingFields(t *testing.T) {
	for _, row := range reroutingRows() {
		name := row[0]
		switch {
		case len(row) < 3:
			t.Errorf("%s: the row does not say what it does, or where that is known from", name)
		case name != strings.ToLower(name) || strings.Contains(name, "_") || len(name) >= MaxPlain:
			t.Errorf("%s: not in lower case with hyphens, or too long", name)
		}
		for _, mark := range []string{"-", "_", ".", "~", "!"} {
			marked := strings.ReplaceAll(name, "-", mark)
			for _, spelt := range []string{marked, strings.ToUpper(marked), strings.ToTitle(marked[:1]) + marked[1:], textproto.CanonicalMIMEHeaderKey(marked)} {
				h := http.Header{spelt: {"/private/x"}, "X-Kept": {"yes"}}
				if dropRerouting(h); len(h) != 1 || h.Get("X-Kept") != "yes" {
					t.Errorf("%s leaves %v", spelt, slices.Sorted(maps.Keys(h)))
				}
			}
		}
	}
	if rows := reroutingRows(); len(reroutingNames) != len(rows) || len(rows) < 100 {
		t.Errorf("%d rows have %d names", len(rows), len(reroutingNames))
	}
}

// reroutingRows returns the columns of each row of the table.
func reroutingRows() (rows [][]string) {
	for line := range strings.Lines(reroutingTable) {
		if !strings.HasPrefix(line, "#") && line != "\n" {
			rows = append(rows, strings.Fields(line))
		}
	}
	return rows
}

// What the comment at reroutingTable names as passed on, and what merely begins like a row.
func TestFieldsPassedOn(t *testing.T) {
	for _, name := range []string{
		"X-Http-Method-Override", "X-Http-Method", "X-Method-Override", "X-Forwarded-For", "X-Forwarded-By", "X-Real-Ip", "Via",
		"Destination", "Referer", "Origin", "Range", "Accept", "Accept-Language", "Next-Url", "X-Requested-With", "Hx-Request", "Turbo-Frame",
		"Cookie", "Authorization", "User-Agent", "Content-Length", "Content-Type", "If-None-Match", "Sec-Fetch-Mode", "Upgrade-Insecure-Requests",
		"X-Original", "X-Forwarded", "Script-Names", "Scriptname", "X-Forwarded-Host-X", "Proxy-Authorization-X",
		"Script-Name" + strings.Repeat("-x", MaxPlain), strings.Repeat("x", MaxPlain) + "-Script-Name",
	} {
		h := http.Header{name: {"v"}}
		if dropRerouting(h); len(h) != 1 {
			t.Errorf("%s is removed", name)
		}
	}
}

// The headers that the gate or net/http writes, and the login, in spellings that those don't
// know.
func TestOtherSpellings(t *testing.T) {
	for _, name := range []string{
		"Content_length", "Content.Length", "TRANSFER_ENCODING", "Transfer~encoding", "Proxy_Authorization", "Proxy.Authorization",
		"Robots_Gate_Decision", "Robots.Gate.Id", "robots-gate-x",
	} {
		h := http.Header{name: {"v"}}
		if dropRerouting(h); len(h) != 0 {
			t.Errorf("%s is left", name)
		}
	}
}

// Plain writes what this shorter form does, as far as there is room.
func TestPlain(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		b := make([]byte, r.IntN(80))
		for i := range b {
			b[i] = byte('!' + r.IntN('~'-'!'+1)) // a field's name is ASCII
		}
		want := strings.Map(func(c rune) rune {
			if strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789", c) {
				return c
			}
			return '-'
		}, strings.ToLower(string(b)))
		var buf [MaxPlain]byte
		if got := Plain(buf[:0], string(b)); string(got) != want[:min(len(want), len(buf))] {
			t.Fatalf("%q: got %q, want %q", b, got, want)
		}
	}
}
