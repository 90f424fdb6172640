package robotstxt

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"robotsgate/internal/gatetest"
)

// typicalFile is the robots.txt of a shop.
const typicalFile = `# robots.txt for https://shop.example.com/
User-agent: *
Disallow: /admin/
Disallow: /account/
Disallow: /cart
Disallow: /checkout
Disallow: /orders
Disallow: /wishlist/
Disallow: /compare/
Disallow: /search?
Disallow: /*?sort=
Disallow: /*&sort=
Disallow: /*?filter=
Disallow: /*/print$
Disallow: /catalog/product_compare/
Disallow: /catalog/category/view/
Disallow: /customer/account/login/
Disallow: /review/product/list/
Disallow: /sendfriend/
Disallow: /newsletter/
Disallow: /cgi-bin/
Disallow: /includes/
Disallow: /lib/
Disallow: /var/
Disallow: /tmp/
Disallow: /*.sql$
Disallow: /index.php/admin/
Disallow: /index.php/catalog/product_compare/
Disallow: /catalogsearch/advanced/
Disallow: /catalogsearch/term/popular/
Disallow: /gift-registry/
Disallow: /store-locator/results?
Disallow: /quick-view/
Disallow: /ajax/
Disallow: /rest/V1/
Disallow: /graphql
Disallow: /static/version*/deployed
Disallow: /error-pages/
Disallow: /*?utm_source=
Disallow: /*?gclid=
Disallow: /*.log$
Allow: /catalog/product_compare/help
Allow: /*.css$
Allow: /*.js$
Allow: /media/catalog/
Crawl-delay: 5

# Crawlers that copy the whole site
User-agent: AhrefsBot
User-agent: MJ12bot
User-agent: SemrushBot
User-agent: DotBot
Disallow: /

User-agent: Googlebot-Image
Disallow: /media/customer/
Disallow: /media/downloadable/
Allow: /media/

User-agent: GPTBot
Disallow: /review/
Disallow: /blog/comments/

Sitemap: https://shop.example.com/sitemap.xml
Sitemap: https://shop.example.com/sitemap-images.xml
`

// TestSize checks that Size is the memory that a File keeps, and that it is bounded.
func TestSize(t *testing.T) {
	var names strings.Builder
	for i := range 500 {
		fmt.Fprintf(&names, "User-agent: ExampleBot%d\n", i)
	}
	for _, test := range []struct {
		name string
		data string
		most float64 // bytes kept for each byte of the file; 0: no matter
	}{
		{"empty", "", 0},
		{"typical", typicalFile, 2.65},
		{"thousand rules", string(randomFile(1000)), 2.5},
		{"not normal", "User-agent: *\n" + strings.Repeat("Disallow: /%7ejoe/ü\n", 1000), 0},
		{"names", names.String() + "Disallow: /", 0},
		{"second comparison", "User-agent: *\n" + strings.Repeat("Disallow: /?a=http://b/\n", 500), 0},
		{"comments", strings.Repeat("# nothing\n", 500), 1.2},
		{"UTF-16", "\xff\xfe" + strings.Repeat("#\x00x\x00y\x00\n\x00", 500), 2},
		{"records", strings.Repeat("Content-Usage: train-ai=n\n", 500), 3},
	} {
		data := []byte(test.data)
		most := test.most * float64(max(len(data), 1))
		kept, size := keptBy(data), float64(Parse(data, 0).Size())
		if most > 0 && kept > most {
			kept = min(kept, keptBy(data)) // 2 KiB that the program has taken for something else are 4 bytes for each file
		}
		if size < 0.9*kept || size > 1.1*kept+32 {
			t.Errorf("%s: Size is %.0f, but %.0f bytes are kept", test.name, size, kept)
		}
		if most > 0 && kept > most {
			t.Errorf("%s: %.0f bytes are kept of %d, want at most %.0f", test.name, kept, len(data), most)
		}
	}
}

// keptBy returns how many bytes a File of this data keeps.
func keptBy(data []byte) float64 {
	files := make([]*File, 500)
	before := gatetest.Heap()
	for i := range files {
		files[i] = Parse(data, 0)
	}
	kept := gatetest.Heap() - before
	runtime.KeepAlive(files)
	return float64(kept) / float64(len(files))
}

// TestNoAllocations checks that the functions called for every request do not allocate.
func TestNoAllocations(t *testing.T) {
	f := Parse([]byte(typicalFile), 0)
	tokens := []string{"ExampleBot", "GPTBot"}
	for name, do := range map[string]func(){
		"Decide":            func() { f.Decide("/media/customer/x.html?sort=x", "ExampleBot", "Googlebot-Image") },
		"Group":             func() { f.Group(tokens...) },
		"Name":              func() { _ = f.Group("GPTBOT").Name() },
		"CrawlDelay":        func() { f.Group("x").CrawlDelay() },
		"IsRobots":          func() { IsRobots("/a/b/c?d=e") },
		"RemoveDotSegments": func() { RemoveDotSegments("/a/.b/..c//%2Fd/") },
		"PathOf":            func() { PathOf("https://example.com/a/b?c") },
	} {
		if n := testing.AllocsPerRun(100, do); n > 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestHostile checks that no file makes parsing or a decision take more than linear time.
// The limits are far above linear time and far below quadratic time.
func TestHostile(t *testing.T) {
	path := "/" + strings.Repeat("a", 2000)
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			if strings.Contains(format, "%") {
				fmt.Fprintf(&b, format+"\n", i)
			} else {
				b.WriteString(format + "\n")
			}
		}
		return b.String()
	}
	var nested strings.Builder
	for i := range 900 {
		nested.WriteString("Disallow: " + path[:i+1] + "*b\n")
	}
	var company strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&company, "User-agent: a\nUser-agent: b%d\nDisallow: /a%d\n", i, i)
	}
	for name, rules := range map[string]string{
		"stars":              lines(10000, "Disallow: /"+strings.Repeat("*a", 18)+"*b"),
		"stars, other rules": lines(10000, "Disallow: /*a*aa*a*aaa*a*%d*b"),
		"segments":           lines(10000, "Disallow: /*aaaa*aaaa*aaaa*aaaa*aaab"),
		"one long pattern":   "Disallow: /" + strings.Repeat("*a", 200000) + "*b\n",
		"long segments":      lines(500, "Disallow: /*"+strings.Repeat("a", 999)+"b"),
		"two long patterns":  "Disallow: /" + strings.Repeat("a", 250000) + "*b\nDisallow: /" + strings.Repeat("a", 250000) + "*c\n",
		"one gram":           lines(10000, "Disallow: /*aaaa*%d$"),
		"grams of the path":  lines(10000, "Disallow: /*aaaa*aaaab"),
		"query":              lines(10000, "Disallow: /*?*%%2F*a*a*a*%d*b"),
		"nested":             nested.String(),
		"alike":              lines(500, "Disallow: "+path[:1000]),
		"many names":         lines(20000, "User-agent: b%d"),
		"many delays":        lines(15000, "User-agent: a\nUser-agent: b%d\nCrawl-delay: 1"),
		"all in company":     "User-agent: a\n" + lines(10000, "User-agent: b%d") + lines(10000, "Disallow: /c%d") + company.String(),
	} {
		data := []byte("User-agent: a\n" + rules)
		start := gatetest.CPUTime(t)
		f := Parse(data, 0)
		parsing := gatetest.CPUTime(t) - start
		start = gatetest.CPUTime(t)
		f.Decide(path+"?"+path, "a")
		deciding := gatetest.CPUTime(t) - start
		t.Logf("%s: %d bytes, %v to parse, %v to decide, %.1f bytes kept for each", name, len(data), parsing, deciding, float64(f.Size())/float64(len(data)))
		if parsing > 2*time.Second || deciding > time.Second || f.Size() > 8*len(data)+1000 {
			t.Errorf("%s: %v to parse, %v to decide, %d bytes kept of %d", name, parsing, deciding, f.Size(), len(data))
		}
	}
}

// TestLongPaths checks the same for paths.
func TestLongPaths(t *testing.T) {
	for name, path := range map[string]string{
		"dots":      strings.Repeat("/..", 300000),
		"up again":  "/" + strings.Repeat("a", 500000) + strings.Repeat("/b/..", 100000),
		"nearly":    strings.Repeat("/.%2", 200000),
		"escapes":   "/" + strings.Repeat("%e4", 300000),
		"malformed": "/" + strings.Repeat("%%3", 300000),
		"queries":   "/" + strings.Repeat("?://", 300000),
	} {
		f := Parse([]byte("User-agent: *\nDisallow: /a?b=http://\n"+strings.Repeat("Disallow: /*abcd*efgh\n", 100)), 0)
		start := gatetest.CPUTime(t)
		f.Decide(PathOf(path), "a")
		if d := gatetest.CPUTime(t) - start; d > time.Second {
			t.Errorf("%s: %v to decide", name, d)
		}
	}
}
