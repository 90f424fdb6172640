package record

import (
	"slices"
	"testing"
)

func TestRedact(t *testing.T) {
	for url, want := range map[string]string{
		"http://a.example/x":             "http://a.example/x",
		"http://a.example/x?":            "http://a.example/x?",
		"http://a.example/x?k=v":         "http://a.example/x?k=*",
		"http://a.example/x?k=v&word&&=": "http://a.example/x?k=*&*&&=*",
		"http://a.example/x?k=a=b?c":     "http://a.example/x?k=*",
		"http://a.example/x?k=v#k=v":     "http://a.example/x?k=*",
		"http://a.example/x#k=v?k=v&w":   "http://a.example/x#k=*&*",
	} {
		if got := Redact(url); got != want {
			t.Errorf("%s: got %s, want %s", url, got, want)
		}
	}
}

// TestRedactRecord: the values of queries are gone from all members that may have them, and no other text changes.
func TestRedactRecord(t *testing.T) {
	for _, c := range []struct {
		r        Record
		path     string
		redacted bool
	}{
		{Record{Origin: "http://a.example", Path: "/x?y=z"}, "/x?y=*", true},
		{Record{Origin: "http://[2001:db8::1]:81", Path: "/a//b?c=://d/"}, "/a//b?c=*", true},
		{Record{Origin: "http://a", Path: "/:"}, "/:", false},
		{Record{Origin: "http://a"}, "", false},
	} {
		r := c.r
		r.ReadAs, r.Error, r.Licenses = "/x?y=z", `a field "y=z" is malformed`, []string{"https://a.example/l?id=1"}
		r.Redact()
		if r.Origin != c.r.Origin || r.Path != c.path || r.Redacted != c.redacted || r.ReadAs != "/x?y=*" || r.Error != `a field "*" is malformed` || !slices.Equal(r.Licenses, []string{"https://a.example/l?id=*"}) {
			t.Errorf("%+v: got %+v", c.r, r)
		}
	}
}
