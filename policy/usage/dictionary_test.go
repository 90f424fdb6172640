package usage

import (
	"maps"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// readTokens returns the members of a Dictionary: the Token of each, or "".
func readTokens(s string) (tokens map[string]string, ok bool) {
	tokens = map[string]string{}
	ok = parseDictionary(s, func(key, token string) { tokens[key] = token })
	return tokens, ok
}

// libraryTokens is readTokens by a library.
func libraryTokens(s string) (tokens map[string]string, ok bool) {
	d, err := httpsfv.UnmarshalDictionary([]string{s})
	if err != nil {
		return nil, false
	}
	tokens = map[string]string{}
	for _, key := range d.Names() {
		m, _ := d.Get(key)
		item, _ := m.(httpsfv.Item)
		token, _ := item.Value.(httpsfv.Token)
		tokens[key] = string(token)
	}
	return tokens, true
}

func TestDictionary(t *testing.T) {
	for _, test := range []struct {
		in   string
		want string // the Token of key a; "fail" if it is no Dictionary
	}{
		{"", ""},
		{"   ", ""},
		{"\t", "fail"},
		{"a=n", "n"},
		{"  a=n  ", "n"},
		{"a=n \t,\t b", "n"},
		{"a=b, a=n", "n"},
		{"a=n, a", ""},
		{"a=N-:/*", "N-:/*"},
		{"a=*", "*"},
		{"a", ""},
		{"a;b;c=1;*d.-_9=\"x\"", ""},
		{"a=n;b;  c=?0", "n"},
		{"a=n ;b", "fail"},
		{"a=n;", "fail"},
		{"a=n;B", "fail"},
		{"a=", "fail"},
		{"a =n", "fail"},
		{"a= n", "fail"},
		{"A=n", "fail"},
		{"1=n", "fail"},
		{"a=n,", "fail"},
		{",a=n", "fail"},
		{"a=n,,b", "fail"},
		{"a=n b", "fail"},
		{"a=né", "fail"},
		{"a=n\x00", "fail"},
		{"a=?1", ""}, {"a=?2", "fail"}, {"a=?", "fail"},
		{"a=1", ""}, {"a=-1", ""}, {"a=-", "fail"}, {"a=+1", "fail"}, {"a=--1", "fail"},
		{"a=999999999999999", ""}, {"a=1234567890123456", "fail"},
		{"a=1.5", ""}, {"a=1.", "fail"}, {"a=.5", "fail"}, {"a=1.1234", "fail"}, {"a=1.2.3", "fail"},
		{"a=123456789012.123", ""}, {"a=1234567890123.1", "fail"},
		{"a=@1", ""}, {"a=@-1", ""}, {"a=@1.5", "fail"}, {"a=@", "fail"},
		{`a="\"\\"`, ""}, {`a="\n"`, "fail"}, {`a="`, "fail"}, {`a="\`, "fail"}, {"a=\"\x7f\"", "fail"},
		{`a=%"%c3%a9"`, ""}, {`a=%"%C3%A9"`, "fail"}, {`a=%"%c3"`, "fail"}, {`a=%"%c3 %a9"`, "fail"}, {`a=%"%22%0a"`, ""},
		{`a=%"%`, "fail"}, {`a=%"%c`, "fail"}, {`a=%`, "fail"}, {`a=%"é"`, "fail"}, {`a=%"x`, "fail"},
		{"a=:YQ==:", ""}, {"a=:YQ:", ""}, {"a=::", ""}, {"a=:YWE=:", ""}, {"a=:YWFh:", ""},
		{"a=:YQ=:", "fail"}, {"a=:Y:", "fail"}, {"a=:=YQ:", "fail"}, {"a=:Y=Q:", "fail"}, {"a=:YQ==", "fail"}, {"a=:Y-:", "fail"}, {"a=:====:", "fail"},
		{"a=()", ""}, {"a=( n  \"x\" )", ""}, {"a=(n;x=1 y);z", ""}, {"a=(n", "fail"}, {"a=(n,y)", "fail"}, {"a=(n\ty)", "fail"}, {"a=((n))", "fail"}, {"a=(n)y", "fail"}, {"a=(n\"x\")", "fail"},
	} {
		tokens, ok := readTokens(test.in)
		got := tokens["a"]
		if !ok {
			got = "fail"
		}
		if got != test.want {
			t.Errorf("%q: got %q, want %q", test.in, got, test.want)
		}
	}
}

// FuzzDictionary asserts that a library reads the same, but for Byte Sequences without padding,
// which it rejects (RFC 9651, 4.2.7, advises against that).
func FuzzDictionary(f *testing.F) {
	f.Add(`a=n, b;c="d", e=(f 1.5;g @1);h, i=%"%c3%a9", j=:YQ==:, k=?0`)
	f.Add("train-ai=n \t,\tsearch=y,")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := readTokens(s)
		want, wantOK := libraryTokens(s)
		if ok && !wantOK && strings.Contains(s, ":") {
			return
		}
		if ok != wantOK || ok && !maps.Equal(got, want) {
			t.Errorf("%q: got %v, %v; want %v, %v", s, got, ok, want, wantOK)
		}
	})
}
