package confine

import (
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func asked(t *testing.T, n *names, name string, kind dnsmessage.Type) dnsmessage.Message {
	var m dnsmessage.Message
	if err := m.Unpack(n.reply(query(t, name, kind))); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestAnswers(t *testing.T) {
	n := newNames([]Reach{{Host: "db.example", Port: 5432}, {Host: "10.0.0.1", Port: 1}, {Host: "other.example", Port: 1}, {Host: "db.example", Port: 1}})
	for _, c := range []struct {
		name string
		kind dnsmessage.Type
		want string // "": no answer
	}{
		{"db.example.", dnsmessage.TypeA, "7.0.0.1"},
		{"DB.example.", dnsmessage.TypeA, "7.0.0.1"},
		{"other.example.", dnsmessage.TypeA, "7.0.0.2"},
		{"localhost.", dnsmessage.TypeA, "127.0.0.1"},
		{"localhost.", dnsmessage.TypeAAAA, "::1"},
		{"x.LOCALHOST.", dnsmessage.TypeA, "127.0.0.1"},
		{"example.com.", dnsmessage.TypeAAAA, ""},
		{"example.com.", dnsmessage.TypeHTTPS, ""},
		{"example.com.", dnsmessage.TypeSVCB, ""},
		{"example.com.", dnsmessage.TypeTXT, ""},
		{"1.0.18.198.in-addr.arpa.", dnsmessage.TypePTR, ""},
		{".", dnsmessage.TypeA, ""},
	} {
		m := asked(t, n, c.name, c.kind)
		got := ""
		if len(m.Answers) == 1 {
			switch body := m.Answers[0].Body.(type) {
			case *dnsmessage.AResource:
				got = netip.AddrFrom4(body.A).String()
			case *dnsmessage.AAAAResource:
				got = netip.AddrFrom16(body.AAAA).String()
			}
		}
		if got != c.want || m.RCode != dnsmessage.RCodeSuccess || m.ID != 7 || !m.Response {
			t.Errorf("%s %v: got %q, %v; want %q", c.name, c.kind, got, m.Header, c.want)
		}
	}
}

// TestStableAddresses checks that a name has one address, whatever its spelling, and that no other name
// has the address of a destination of reach.
func TestStableAddresses(t *testing.T) {
	n := newNames([]Reach{{Host: "db.example", Port: 5432}})
	first := n.address("shop.example")
	if again := n.address("shop.example"); again != first {
		t.Errorf("got %v and then %v", first, again)
	}
	if other := n.address("other.example"); other == first {
		t.Errorf("two names have the address %v", other)
	}
	if got := asked(t, n, "SHOP.example.", dnsmessage.TypeA).Answers[0].Body.(*dnsmessage.AResource).A; netip.AddrFrom4(got) != first {
		t.Errorf("SHOP.example: got %v, want %v", got, first)
	}
}

func TestRefusedQueries(t *testing.T) {
	n := newNames(nil)
	chaos := dnsmessage.Message{Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName("version.bind."), Type: dnsmessage.TypeTXT, Class: dnsmessage.ClassCHAOS}}}
	two := dnsmessage.Message{Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName("a.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
		{Name: dnsmessage.MustNewName("b.example."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
	}}
	for _, c := range []struct {
		name string
		m    dnsmessage.Message
	}{
		{"another class", chaos},
		{"two questions", two},
		{"no question", dnsmessage.Message{}},
		{"an update", dnsmessage.Message{Header: dnsmessage.Header{OpCode: 5}, Questions: two.Questions[:1]}},
	} {
		packed, err := c.m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		var got dnsmessage.Message
		if err := got.Unpack(n.reply(packed)); err != nil || got.RCode != dnsmessage.RCodeRefused || len(got.Answers) > 0 {
			t.Errorf("%s: got %v, %v", c.name, got, err)
		}
	}
	if got := n.reply([]byte("short")); got != nil {
		t.Errorf("an incomplete header: got %q, want no answer", got)
	}
	response := dnsmessage.Message{Header: dnsmessage.Header{Response: true}}
	packed, _ := response.Pack()
	if got := n.reply(packed); got != nil {
		t.Errorf("a response: got %q, want no answer", got)
	}
}

// FuzzReply checks that every answer is a valid response to its query, that it is small, and that its
// address is a synthetic or a loopback one.
func FuzzReply(f *testing.F) {
	f.Add(query(f, "example.com.", dnsmessage.TypeA))
	f.Add(query(f, "localhost.", dnsmessage.TypeAAAA))
	f.Add(query(f, "db.example.", dnsmessage.TypeHTTPS))
	f.Add([]byte("\x00\x01\x01\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01\x00\x00\x01\x00\x01"))
	n := newNames([]Reach{{Host: "db.example", Port: 5432}})
	f.Fuzz(func(t *testing.T, q []byte) {
		reply := n.reply(q)
		if reply == nil {
			return
		}
		var m dnsmessage.Message
		if err := m.Unpack(reply); err != nil {
			t.Fatal(err)
		}
		if !m.Response || m.ID != uint16(q[0])<<8|uint16(q[1]) || len(m.Answers) > 1 || len(reply) > 600 {
			t.Errorf("%q: got %v", q, m)
		}
		for _, a := range m.Answers {
			if a.Header.Name.String() != m.Questions[0].Name.String() {
				t.Errorf("%q: the answer is for %v", q, a.Header.Name)
			}
			if body, is := a.Body.(*dnsmessage.AResource); is && !synthetic.Contains(netip.AddrFrom4(body.A)) && body.A != loopback4.As4() {
				t.Errorf("%q: got the address %v", q, body.A)
			}
		}
	})
}
