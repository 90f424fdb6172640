package auth

import (
	"encoding/base64"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	long := strings.Repeat("p", maxPassword)
	for _, c := range []struct {
		value          string
		user, password string
		invalid        bool
	}{
		{"Basic bmV3czpzM2NyZXQ=", "news", "s3cret", false},
		{"basic bmV3czpzM2NyZXQ=", "news", "s3cret", false},
		{"BASIC   bmV3czpzM2NyZXQ= ", "news", "s3cret", false},
		{"Basic bmV3czpzM2NyZXQ", "news", "s3cret", false}, // without its padding
		{"Basic " + encode([]byte("news:a:b")), "news", "a:b", false},
		{"Basic " + encode([]byte("news:")), "news", "", false},
		{"Basic " + encode([]byte(":x")), "", "x", false},
		{"Basic " + encode([]byte("jürgen:pässwörd")), "jürgen", "pässwörd", false},
		{"Basic " + encode([]byte("news:"+long)), "news", long, false},
		{"Basic " + encode([]byte("news:"+long+"p")), "", "", true},
		{"Basic " + encode([]byte("news")), "", "", true},
		{"Basic " + encode([]byte("news:a\x00b")), "", "", true},
		{"Basic " + encode([]byte("ne\tws:ab")), "", "", true},
		{"Basic bmV3czpzM2NyZX!=", "", "", true},
		{"Basic bmV3czpz M2NyZXQ=", "", "", true},
		{"Basic", "", "", true},
		{"Basicbmv3czpzM2NyZXQ=", "", "", true},
		{"Bearer bmV3czpzM2NyZXQ=", "", "", true},
		{"", "", "", true},
	} {
		if got, want := *Parse([]string{c.value}), (Login{c.user, c.password, c.invalid}); got != want {
			t.Errorf("%q: got %+v, want %+v", c.value, got, want)
		}
	}
	if got := Parse(nil); got != nil {
		t.Errorf("no header: got %+v", got)
	}
	if got := Parse([]string{"Basic bmV3czpzM2NyZXQ=", "Basic bmV3czpzM2NyZXQ="}); !got.Invalid {
		t.Errorf("two headers: got %+v", got)
	}
}
