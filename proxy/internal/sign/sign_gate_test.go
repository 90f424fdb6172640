package sign_test

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dadrus/httpsig"

	"robotsgate/policy"
	"robotsgate/policy/glob"
	"robotsgate/proxy"
	"robotsgate/proxy/internal/proxytest"
	"robotsgate/proxy/internal/sign"
)

// A testKey is a SigningKey.
type testKey struct {
	private ed25519.PrivateKey
	public  ed25519.PublicKey
	id      string
}

func newTestKey(seed byte) testKey {
	private := ed25519.NewKeyFromSeed(slices.Repeat([]byte{seed}, ed25519.SeedSize))
	public := private.Public().(ed25519.PublicKey)
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + base64.RawURLEncoding.EncodeToString(public) + `"}`))
	return testKey{private, public, base64.RawURLEncoding.EncodeToString(sum[:])}
}

func (k testKey) ID() string                 { return k.id }
func (k testKey) Sign(message []byte) []byte { return ed25519.Sign(k.private, message) }

const testAgent = "https://bots.example.com"

// signingCrawler returns a crawler with requests that are signed, matched by its name in the User-Agent.
func signingCrawler(name string, key sign.Key, change func(*proxy.Signing)) *policy.Crawler {
	s := proxy.Signing{Key: key, Agent: testAgent}
	if change != nil {
		change(&s)
	}
	return &policy.Crawler{Name: name, UserAgents: []glob.Glob{glob.Text("*" + name + "*")}, KeyID: key.ID(), Wrap: s.Transport}
}

// withSigning makes the crawler ExampleBot of a gate sign.
func withSigning(change func(*proxy.Signing)) func(*policy.Config) {
	return func(c *policy.Config) {
		c.Crawlers.Known = append(c.Crawlers.Known, signingCrawler("ExampleBot", newTestKey(1), change))
	}
}

var (
	inputForm     = regexp.MustCompile(`\Asig1=(\("@authority" "@method" "@path" (?:"signature-agent"|"signature-agent";key="sig1")\);created=([0-9]+);keyid="([A-Za-z0-9_-]{43})";alg="ed25519";expires=([0-9]+);nonce="([A-Za-z0-9+/]{86}==)";tag="web-bot-auth")\z`)
	signatureForm = regexp.MustCompile(`\Asig1=:([A-Za-z0-9+/]{86}==):\z`)
)

// verify returns an error unless a request has exactly the fields of a signature that key has made for it within the last
// seconds. It returns the nonce. It does not use any code of the gate.
func verify(r *http.Request, key testKey, form string) (nonce string, err error) {
	for _, name := range []string{"Signature-Agent", "Signature-Input", "Signature"} {
		if n := len(r.Header[name]); n != 1 {
			return "", fmt.Errorf("%d lines of %s, want 1", n, name)
		}
	}
	agent, component, covered := `"`+testAgent+`"`, `"`+testAgent+`"`, `"signature-agent"`
	if form == "dictionary" {
		component, covered = `"`+testAgent+`/.well-known/http-message-signatures-directory"`, `"signature-agent";key="sig1"`
		agent = "sig1=" + component
	}
	if got := r.Header.Get("Signature-Agent"); got != agent {
		return "", fmt.Errorf("Signature-Agent: got %s, want %s", got, agent)
	}
	input := inputForm.FindStringSubmatch(r.Header.Get("Signature-Input"))
	signature := signatureForm.FindStringSubmatch(r.Header.Get("Signature"))
	if input == nil || signature == nil {
		return "", fmt.Errorf("wrong form: %s, %s", r.Header.Get("Signature-Input"), r.Header.Get("Signature"))
	}
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if _, rest, absolute := strings.Cut(path, "://"); absolute { // as a parent proxy receives it
		path = rest[strings.IndexByte(rest, '/'):]
	}
	base := strings.Join([]string{`"@authority": ` + r.Host, `"@method": ` + r.Method, `"@path": ` + path, covered + ": " + component, `"@signature-params": ` + input[1]}, "\n")
	raw, err := base64.StdEncoding.DecodeString(signature[1])
	if err != nil || !ed25519.Verify(key.public, []byte(base), raw) {
		return "", fmt.Errorf("the signature is not that of\n%s", base)
	}
	created, _ := strconv.ParseInt(input[2], 10, 64)
	if expires, _ := strconv.ParseInt(input[4], 10, 64); expires != created+60 || input[3] != key.id {
		return "", fmt.Errorf("wrong parameters: %s", input[0])
	}
	if age := time.Since(time.Unix(created, 0)); age < 0 || age > proxytest.Patience {
		return "", fmt.Errorf("created %v ago", age)
	}
	return input[5], verifyByLibrary(r, key, path, covered)
}

type oneKey struct{ testKey }

func (k oneKey) ResolveKey(context.Context, string) (httpsig.Key, error) {
	return httpsig.Key{KeyID: k.id, Algorithm: httpsig.Ed25519, Key: k.public}, nil
}

// verifyByLibrary is a second opinion on the same request.
func verifyByLibrary(r *http.Request, key testKey, path, covered string) error {
	v, err := httpsig.NewVerifier(oneKey{key}, httpsig.WithRequiredTag("web-bot-auth",
		httpsig.WithRequiredComponents("@authority", "@method", "@path", strings.ReplaceAll(covered, `"signature-agent"`, "signature-agent"))))
	if err != nil {
		return err
	}
	u := *r.URL
	u.RawPath = path // as it is on the wire
	return v.Verify(&httpsig.Message{Context: context.Background(), IsRequest: true, Method: r.Method, Authority: r.Host, URL: &u, Header: r.Header})
}

// nonces notes the nonces of all tests: none may come twice.
var nonces sync.Map

// wantSigned fails unless a request is signed as form says, with a nonce of its own.
func wantSigned(t *testing.T, r *http.Request, key testKey, form string) {
	t.Helper()
	nonce, err := verify(r, key, form)
	if err != nil {
		t.Errorf("%s %s: %v", r.Method, r.RequestURI, err)
		return
	}
	if first, twice := nonces.LoadOrStore(nonce, r); twice && first != r {
		t.Errorf("%s %s: its nonce was used before", r.Method, r.RequestURI)
	}
}

// wantUnsigned fails if a request has any field of a signature.
func wantUnsigned(t *testing.T, r *http.Request) {
	t.Helper()
	for name := range r.Header {
		if isSignature(name) {
			t.Errorf("%s %s has %s: %q", r.Method, r.RequestURI, name, r.Header[name])
		}
	}
}

// Every request of a signing crawler is signed, whatever it is and on whatever way it comes and goes. The
// signature covers what is sent, and the signature's fields of the client are removed.
func TestSigned(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	cases := []struct {
		name, method, path, body string
		headers                  []string
		sent                     string // path that arrives, if it is another
		http1                    bool   // only over HTTP/1
		passes                   string // a header that arrives as it is in headers
	}{
		{name: "GET", method: "GET", path: "/offers.html"},
		{name: "HEAD", method: "HEAD", path: "/offers.html"},
		{name: "DELETE", method: "DELETE", path: "/offers.html"},
		{name: "own method", method: "Purge", path: "/x"},
		{name: "POST", method: "POST", path: "/form", body: "a=b"},
		{name: "PUT, long", method: "PUT", path: "/file", body: long},
		{name: "query", method: "GET", path: "/search?q=a%20b&n=1"},
		{name: "empty query", method: "GET", path: "/search?"},
		{name: "encoded", method: "GET", path: "/%7ea/%2Fb%20c/%E2%82%ac"},
		{name: "reserved", method: "GET", path: "/a;b=c,d/(e)!$&'*+:@~"},
		{name: "double slash", method: "GET", path: "//a//"},
		{name: "dot segments", method: "GET", path: "/a/./b/../c", sent: "/a/c"},
		{name: "signature of the client", method: "GET", path: "/1", headers: []string{"Signature", "sig1=:AA==:", "Signature-Input", `sig1=("@path")`, "Signature-Agent", `"https://evil.example"`}},
		{name: "several lines", method: "GET", path: "/2", headers: []string{"Signature", "a=:AA==:", "Signature", "b=:AA==:", "signature-INPUT", "a=()", "Signature-Input", "b=()"}},
		{name: "other spellings", method: "GET", path: "/3", headers: []string{"Signature_Input", "sig1=()", "signature.agent", "x", "SIGNATURE", "sig1=:AA==:"}},
		{name: "named by Connection", method: "GET", path: "/4", headers: []string{"Connection", "Signature, Signature-Input, signature-agent", "Signature", "x"}, http1: true},
		{name: "with a body", method: "POST", path: "/5", body: "b", headers: []string{"Signature", "x", "Signature-Input", "y"}},
		{name: "Expect", method: "POST", path: "/6", body: "b", headers: []string{"Expect", "100-continue"}},
		{name: "Accept-Signature", method: "GET", path: "/7", headers: []string{"Accept-Signature", `sig1=("@status")`}, passes: "Accept-Signature"},
		{name: "Content-Digest", method: "POST", path: "/8", body: "b", headers: []string{"Content-Digest", "sha-256=:AA==:"}, passes: "Content-Digest"},
		{name: "names that begin alike", method: "GET", path: "/9", headers: []string{"Signature-Key", "x"}, passes: "Signature-Key"},
		{name: "override", method: "GET", path: "/permitted/x"},
		{name: "report mode", method: "GET", path: "/private/x", headers: []string{"User-Agent", "ExampleBot reports"}},
	}
	key := newTestKey(1)
	for _, form := range []string{"string", "dictionary"} {
		g := proxytest.Start(t, proxytest.Options{
			Robots:  "User-agent: *\nDisallow: /private/\nDisallow: /permitted/\n",
			Handler: func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, // else it closes the connection of a long one
			Engine: func(c *policy.Config) {
				change := func(s *proxy.Signing) { s.Dictionary = form == "dictionary" }
				reports := signingCrawler("reports", key, change)
				reports.Mode = policy.Report
				c.Crawlers.Known = []*policy.Crawler{reports}
				withSigning(change)(c)
				c.Overrides = []policy.Override{{Paths: []string{"/permitted/"}, Hosts: []glob.Glob{proxytest.MustHost(t, "*")}, Action: policy.Allow, Reason: "r"}}
			},
		})
		t.Run(form, func(t *testing.T) {
			g.Ways(t, func(t *testing.T, v proxytest.Way) {
				for _, c := range cases {
					if c.http1 && v.Name == "https HTTP/2" {
						continue
					}
					t.Run(c.name, func(t *testing.T) {
						req, err := http.NewRequestWithContext(t.Context(), c.method, v.Origin+c.path, strings.NewReader(c.body))
						if err != nil {
							t.Fatal(err)
						}
						if c.body == "" {
							req.Body = http.NoBody
						}
						req.Header.Set("User-Agent", "ExampleBot/1.0")
						for i := 0; i+1 < len(c.headers); i += 2 {
							if name := c.headers[i]; name == "User-Agent" {
								req.Header.Set(name, c.headers[i+1])
							} else if http.CanonicalHeaderKey(name) == name {
								req.Header.Add(name, c.headers[i+1])
							} else {
								req.Header[name] = []string{c.headers[i+1]}
							}
						}
						resp, err := v.Client.Do(req)
						if err != nil {
							t.Fatal(err)
						}
						resp.Body.Close()
						proxytest.WantStatus(t, resp, 200)
						r, x := g.Last(), g.Next(t)
						want := c.path
						if c.sent != "" {
							want = c.sent
						}
						if r.RequestURI != want {
							t.Errorf("got %s, want %s", r.RequestURI, want)
						}
						wantSigned(t, r, key, form)
						for name := range r.Header {
							if plain := strings.ToLower(name); isSignature(name) && plain != "signature" && plain != "signature-input" && plain != "signature-agent" {
								t.Errorf("the client's %s arrived", name)
							}
						}
						if c.passes != "" && r.Header.Get(c.passes) != c.headers[1] {
							t.Errorf("%s: got %q, want %q", c.passes, r.Header.Get(c.passes), c.headers[1])
						}
						if x.Signed != key.id || x.Stages.Signing <= 0 {
							t.Errorf("the record has Signed %q after %v", x.Signed, x.Stages.Signing)
						}
						for name := range resp.Header {
							if isSignature(name) {
								t.Errorf("the client received %s", name)
							}
						}
					})
				}
			})
			for _, r := range robotsRequests(g) {
				wantSigned(t, r, key, form)
			}
		})
	}
}

// robotsRequests returns the requests for robots.txt that arrived.
func robotsRequests(g *proxytest.Gate) (all []*http.Request) {
	for _, r := range g.Requests() {
		if r.RequestURI == "/robots.txt" {
			all = append(all, r)
		}
	}
	return all
}

// What crawlers without a signature, and unknown clients, send passes as it came.
func TestUnsigned(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine: func(c *policy.Config) {
			c.Crawlers.Known = []*policy.Crawler{signingCrawler("SignedBot", newTestKey(1), nil), {Name: "ExampleBot", UserAgents: []glob.Glob{glob.Text("*ExampleBot*")}}}
		},
	})
	own := []string{"Signature", "sig9=:AA==:", "Signature-Input", `sig9=("@path")`, "Signature-Agent", `"https://own.example"`}
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		for _, agent := range []string{"ExampleBot/1.0", "Unknown/1.0"} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", v.Origin+"/a", nil)
			req.Header.Set("User-Agent", agent)
			for i := 0; i < len(own); i += 2 {
				req.Header.Set(own[i], own[i+1])
			}
			resp, err := v.Client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			r, x := g.Last(), g.Next(t)
			for i := 0; i < len(own); i += 2 {
				if got := r.Header[own[i]]; !slices.Equal(got, own[i+1:i+2]) {
					t.Errorf("%s: %s: got %q, want %q", agent, own[i], got, own[i+1])
				}
			}
			if x.Signed != "" || x.Stages.Signing != 0 {
				t.Errorf("%s: the record has Signed %q, %v", agent, x.Signed, x.Stages.Signing)
			}
		}
	})
	for _, r := range robotsRequests(g) {
		wantUnsigned(t, r)
	}
}

// Fields of a signature in the trailer of a client's request are removed, too.
func TestSignedTrailer(t *testing.T) {
	g := proxytest.Start(t, proxytest.Options{
		Engine:  withSigning(nil),
		Handler: func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }, // then the trailer is known
	})
	g.Ways(t, func(t *testing.T, v proxytest.Way) {
		req, err := http.NewRequestWithContext(t.Context(), "POST", v.Origin+"/upload", io.NopCloser(strings.NewReader("a body")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("User-Agent", "ExampleBot/1.0")
		req.Trailer = http.Header{"Signature": {"x"}, "Signature-Input": {"y"}}
		resp, err := v.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		proxytest.WantStatus(t, resp, 200)
		r := g.Last()
		wantSigned(t, r, newTestKey(1), "string")
		if len(r.Trailer) != 0 {
			t.Errorf("the trailer %v arrived", r.Trailer)
		}
	})
}

// isSignature reports whether a field belongs to a signature, in any spelling that a server may take for its name.
func isSignature(name string) bool {
	plain := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
	return slices.Contains([]string{"signature", "signature-input", "signature-agent"}, plain)
}
