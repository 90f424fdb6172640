package fleet

import (
	"strings"
	"testing"
)

func TestParseAddress(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"redis://valkey", "redis://valkey:6379"},
		{"redis://valkey:7000/", "redis://valkey:7000"},
		{"rediss://gate:s3cret@valkey:7000/3", "rediss://valkey:7000/3"},
		{"redis://:s3cret@valkey", "redis://valkey:6379"},
		{"redis://gate:s3/cr?e@t@valkey", "redis://valkey:6379"},
		{"redis://a,b:7001,[2001:db8::1],[2001:db8::2]:7002", "redis://a:6379,b:7001,[2001:db8::1]:6379,[2001:db8::2]:7002"},
		{"redis://a,b:7001/2?sentinel=main", "redis://a:26379,b:7001/2?sentinel=main"},
	} {
		a, err := parseAddress(c.text)
		if err != nil || a.String() != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.text, a, err, c.want)
		}
	}
	a, err := parseAddress("rediss://g%40te:s3%25cret%2F@valkey/3")
	if err != nil || a.user != "g@te" || a.password != "s3%cret/" || !a.tls || a.database != 3 {
		t.Errorf("got %+v, %v", a, err)
	}
}

func TestParseAddressMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "begin with redis:// or rediss://"},
		{"valkey:6379", "begin with redis:// or rediss://"},
		{"http://gate:s3cret@valkey", "begin with redis:// or rediss://"},
		{"redis://", "expected HOST or HOST:PORT"},
		{"redis://gate:s3cret@", "expected HOST or HOST:PORT"},
		{"redis://s3cret@valkey", "expected USER:PASSWORD@"},
		{"redis://gate:@valkey", "is empty"},
		{"redis://gate:s3cret%@valkey", "write a % as %25"},
		{"redis://gate:s3cret@valkey:port", "from 1 to 65535"},
		{"redis://gate:s3cret@valkey:0", "from 1 to 65535"},
		{"redis://gate:s3cret@2001:db8::1", "in brackets"},
		{"redis://gate:s3cret@a,,b", "expected HOST or HOST:PORT"},
		{"redis://gate:s3cret@a/x", "must be a number"},
		{"redis://gate:s3cret@a,b/1", "no database but 0"},
		{"redis://gate:s3cret@a?master=b", "only sentinel=NAME"},
		{"redis://gate:s3cret@a?sentinel=", "only sentinel=NAME"},
	} {
		a, err := parseAddress(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v, want an error with %q", c.text, a, err, c.want)
			continue
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: the error shows the password: %v", c.text, err)
		}
	}
}
