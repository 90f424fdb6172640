package docs

import (
	"fmt"
	"io/fs"
	"maps"
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

// TestFileComments looks for the files that the comments "Where to change what" and "How the files fit together" of
// packages name, beside the comment or from the root.
func TestFileComments(t *testing.T) {
	comment := regexp.MustCompile(`(?m)^// (?:Where to change what|How the files fit together)\..*\n(?://.*\n)+`)
	name := regexp.MustCompile(`[\w./]+\.(?:go|html|jsonl?|md|txt|txtar)\b`)
	found := 0
	for _, dir := range gatetest.Packages(t) {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			for _, text := range comment.FindAllString(gatetest.Read(t, file), -1) {
				found++
				text = strings.NewReplacer("robots.txt", "", "tdmrep.json", "").Replace(text) // files of sites
				for _, other := range name.FindAllString(text, -1) {
					_, beside := os.Stat(filepath.Join(dir, filepath.FromSlash(other)))
					if _, err := os.Stat(filepath.FromSlash(other)); err != nil && beside != nil {
						t.Errorf("%s names %s, which is neither beside it nor at the root", file, other)
					}
				}
			}
		}
	}
	if found < 10 {
		t.Errorf("found only %d such comments", found)
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

func TestAnchors(t *testing.T) {
	got := slices.Sorted(maps.Keys(anchors("# What a proxy can't see\n\n## `robots.max_age`: *how long*\n\n## [Memory](x.md), again\n\n## Use\n\n## Use\n\n```sh\n# a comment\n```\n")))
	want := []string{"memory-again", "robotsmax_age-how-long", "use", "use-1", "what-a-proxy-cant-see"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestFollow breaks links in each way that TestMarkdownLinks must report.
func TestFollow(t *testing.T) {
	for to, ok := range map[string]bool{
		"limits.md": true, "limits.md#bounds": true, "#how-a-decision-is-made": true, "../README.md": true, "../policy": true,
		"missing.md": false, "limits.md#missing": false, "#missing": false, "../../README.md": false, "../policy#bounds": false,
	} {
		if err := follow("docs/decisions.md", to); (err == nil) != ok {
			t.Errorf("%s: got %v, want success %v", to, err, ok)
		}
	}
	page := "See [a](a.md#x), ![b](<b.png>), [c][c], `[d](d.md)` and [e](https://e.example/).\n\n```sh\n[f](f.md)\n```\n\n[c]: c.md\n"
	if got, want := relativeLinks(page), []string{"a.md#x", "b.png", "c.md"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
