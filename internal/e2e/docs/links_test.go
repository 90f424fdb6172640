package docs

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"robotsgate/internal/gatetest"
)

var (
	codeBlock  = regexp.MustCompile("(?ms)^[ ]{0,3}(```|~~~).*?^[ ]{0,3}(```|~~~)[ ]*$")
	codeSpan   = regexp.MustCompile("`[^`\n]*`")
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *$`)
	inlineLink = regexp.MustCompile(`\]\(\s*<?([^)\s>]+)`)
	definition = regexp.MustCompile(`(?m)^ {0,3}\[[^\]\n]+\]: *<?([^\s>]+)`)
	absolute   = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:`)
)

// TestMarkdownLinks follows every relative link of every Markdown file to a file and,
// where the link has a fragment, to a heading of that file.
func TestMarkdownLinks(t *testing.T) {
	pages := markdownFiles(t)
	for _, page := range []string{"README.md", "SECURITY.md", "docs/limits.md"} {
		if !slices.Contains(pages, page) {
			t.Fatalf("%s is not among %q", page, pages)
		}
	}
	links := 0
	for _, page := range pages {
		for _, to := range relativeLinks(gatetest.Read(t, page)) {
			links++
			if err := follow(page, to); err != nil {
				t.Errorf("%s links to %s: %v", page, to, err)
			}
		}
	}
	if links == 0 {
		t.Error("no relative links found")
	}
}

// markdownFiles returns the repository's Markdown files, without installed dependencies.
func markdownFiles(t *testing.T) (files []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
			return fs.SkipDir
		case path.Ext(name) == ".md":
			files = append(files, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// relativeLinks returns the targets of a page's links that have no scheme.
func relativeLinks(text string) (all []string) {
	text = codeBlock.ReplaceAllString(text, "")
	for _, pattern := range []*regexp.Regexp{inlineLink, definition} {
		for _, m := range pattern.FindAllStringSubmatch(codeSpan.ReplaceAllString(text, ""), -1) {
			if !absolute.MatchString(m[1]) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// follow reports a link on a page whose file or heading does not exist.
func follow(page, to string) error {
	name, fragment, hasFragment := strings.Cut(to, "#")
	file := page
	if name != "" {
		file = path.Join(path.Dir(page), name)
	}
	if !fs.ValidPath(file) {
		return fmt.Errorf("%s is outside the repository", file)
	}
	if _, err := os.Stat(filepath.FromSlash(file)); err != nil || !hasFragment {
		return err
	}
	text, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		return err
	}
	if !anchors(string(text))[fragment] {
		return fmt.Errorf("%s has no heading with the anchor #%s", file, fragment)
	}
	return nil
}

// anchors returns the anchors that GitHub gives to a page's headings: lower case,
// spaces as hyphens, no other punctuation than hyphen and underscore, and a number
// from the second heading with the same text on.
func anchors(text string) map[string]bool {
	all := map[string]bool{}
	count := map[string]int{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(text, ""), -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1") // a link shows its text only
		anchor := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r):
				return unicode.ToLower(r)
			}
			return -1
		}, title)
		name := anchor
		if n := count[anchor]; n > 0 {
			name = fmt.Sprintf("%s-%d", anchor, n)
		}
		count[anchor]++
		all[name] = true
	}
	return all
}
