package fleet

import (
	"fmt"
	"strings"
	"testing"
)

// TestParseAddress: the parts of an address. The status shows it without user and password.
func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"redis://valkey", "false [valkey:6379] 0 "},
		{"redis://valkey:7000/", "false [valkey:7000] 0 "},
		{"rediss://gate:s3cret@valkey:7000/3", "true [valkey:7000] 3 "},
		{"redis://:s3cret@valkey", "false [valkey:6379] 0 "},
		{"redis://gate:s3/cr?e@t@valkey", "false [valkey:6379] 0 "},
		{"redis://a,b:7001,[2001:db8::1],[2001:db8::2]:7002", "false [a:6379 b:7001 [2001:db8::1]:6379 [2001:db8::2]:7002] 0 "},
		{"redis://a,b:7001/2?sentinel=main", "false [a:26379 b:7001] 2 main"},
	} {
		a, err := parseAddress(Address(c.text))
		if got := fmt.Sprint(a.tls, " ", a.hosts, " ", a.database, " ", a.sentinel); err != nil || got != c.want || strings.Contains(Address(c.text).withoutLogin(), "s3") {
			t.Errorf("%s: got %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	a, err := parseAddress("rediss://g%40te:s3%25cret%2F@valkey/3")
	if err != nil || a.user != "g@te" || a.password != "s3%cret/" || !a.tls || a.database != 3 {
		t.Errorf("got %+v, %v", a, err)
	}
}

// TestStoreAddress: mistakes say what is expected, and never repeat the text.
func TestStoreAddress(t *testing.T) {
	for _, c := range []struct{ text, shown, mistake string }{
		{"redis://127.0.0.1:6379", "redis://127.0.0.1:6379", ""},
		{"rediss://valkey.lan", "rediss://valkey.lan", ""},
		{"redis://gate:hunter2@valkey.lan:6379", "redis://xxxxx:xxxxx@valkey.lan:6379", ""},
		{"redis://:hunter2@valkey.lan", "redis://xxxxx:xxxxx@valkey.lan", ""},
		{"redis://gate:hunter2%2F%40@a.lan:1,b_2.lan,[2001:db8::1]:3?sentinel=my-main", "redis://xxxxx:xxxxx@a.lan:1,b_2.lan,[2001:db8::1]:3?sentinel=my-main", ""},
		{"redis://[::1]", "redis://[::1]", ""},
		{"redis://a.lan/", "redis://a.lan/", ""},
		{"redis://a.lan/3", "redis://a.lan/3", ""},
		{"redis://a.lan,b.lan/3?sentinel=main", "redis://a.lan,b.lan/3?sentinel=main", ""},
		{"redis://gate:hun/t?e#r2:@@a.lan", "redis://xxxxx:xxxxx@a.lan", ""},
		{"redis://gate:a@b.lan,gate:hunter2@c.lan", "redis://xxxxx:xxxxx@c.lan", ""},

		{"hunter2", "", "expected redis://HOST:PORT"},
		{"valkey.lan:6379", "", "expected redis://HOST:PORT"},
		{"hunter2://valkey.lan", "", "expected redis://HOST:PORT"},
		{"valkeys://valkey.lan", "", "expected redis://HOST:PORT"},
		{"redis://", "", "expected HOST:PORT"},
		{"redis://a.lan,", "", "expected HOST:PORT"},
		{"redis://:6379", "", "expected HOST:PORT"},
		{"redis://a.lan:0", "", "expected a port between 1 and 65535"},
		{"redis://a.lan:", "", "expected a port between 1 and 65535"},
		{"redis://a.lan:6379:1", "", "expected HOST:PORT"},
		{"redis://a b", "", "expected HOST:PORT"},
		{"redis://2001:db8::1", "", "expected HOST:PORT"},
		{"redis://[::1]1", "", "expected HOST:PORT"},
		{"redis://gate:hunter2", "", "user and password end with @"},
		{"redis://gate hunter2", "", "expected HOST:PORT"},
		{"redis://a.lan/x", "", "only /NUMBER"},
		{"redis://a.lan/1/", "", "only /NUMBER"},
		{"redis://a.lan,b.lan/1", "", "no database but 0"},
		{"redis://a.lan?db=1", "", "only sentinel=NAME"},
		{"redis://a.lan?sentinel=", "", "only sentinel=NAME"},
		{"redis://a.lan?sentinel=a&b=c", "", "only sentinel=NAME"},
		{"redis://hunter2@a.lan", "", "expected USER:PASSWORD"},
		{"redis://gate:@a.lan", "", "expected USER:PASSWORD"},
		{"redis://gate:hunter2%@a.lan", "", "write %25"},
		{"redis://gate%:hunter2@a.lan", "", "write %25"},
		{"redis://a.lan?sentinel=gate@hunter2", "", "expected USER:PASSWORD"},
	} {
		a := Address(c.text)
		_, err := parseAddress(a)
		switch {
		case err != nil && (c.mistake == "" || !strings.Contains(err.Error(), c.mistake) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("%s: got %v, want %q", c.text, err, c.mistake)
		case err == nil && (c.mistake != "" || a.String() != c.shown):
			t.Errorf("%s: got %q, shown as %q", c.text, c.text, a)
		}
	}
}
