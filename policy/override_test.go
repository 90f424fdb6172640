package policy

import "testing"

// TestPreparedCopy: a copy of a prepared override with other paths is for these.
func TestPreparedCopy(t *testing.T) {
	o := Prepared([]Override{{Paths: []string{"/a/"}}})[0]
	o.Paths = []string{"/b/"}
	group := Prepared([]Override{o})[0].group()
	for path, want := range map[string]bool{"/a/x": false, "/b/x": true} {
		if _, got := group.Match(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// TestMisspelt: a word that is no setting refuses.
func TestMisspelt(t *testing.T) {
	for word, want := range map[Reserved]bool{"": false, AnnotateReserved: false, RefuseReserved: true, "Refuse": true} {
		if got := (Usage{Reserved: word}).Refuses(); got != want {
			t.Errorf("%q: got %v, want %v", word, got, want)
		}
	}
}
