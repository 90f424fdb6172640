package docs

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"robotsgate/internal/gatetest"
)

const (
	sentenceWords = 35 // at most, in a sentence
	cellWords     = 40 // at most, in a cell of a table
)

// TestWords bounds the sentences and the cells of the documentation, and the sentences in the
// comments of config.yaml.
func TestWords(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages in docs/: %v", err)
	}
	for _, page := range append(pages, "README.md", "SECURITY.md", "CHANGELOG.md") {
		for _, fault := range longTexts(texts(gatetest.Read(t, page))) {
			t.Errorf("%s:%s", page, fault)
		}
	}
	for _, fault := range longTexts(comments(gatetest.Read(t, "config.yaml"))) {
		t.Errorf("config.yaml:%s", fault)
	}
}

// A passage is a paragraph, an item of a list or a cell of a table.
type passage struct {
	line int // of its beginning
	text string
	cell bool
}

var (
	fence    = regexp.MustCompile("^ *(```|~~~)")
	newBlock = regexp.MustCompile(`^ *([-*+]|\d+\.) |^#`)
	link     = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	ends     = regexp.MustCompile(`[.?!][)"*_]*\s`)
)

// texts returns the passages of a page in Markdown, without blocks of code.
func texts(page string) (all []passage) {
	inCode, open := false, false // open: the next line may go on with the last passage
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case fence.MatchString(line):
			inCode, open = !inCode, false
		case inCode:
		case trimmed == "" || strings.Trim(trimmed, "|-: ") == "":
			open = false
		case strings.HasPrefix(trimmed, "|"):
			cells := strings.Split(strings.ReplaceAll(strings.Trim(trimmed, "|"), `\|`, "¦"), "|")
			for _, cell := range cells {
				all = append(all, passage{i + 1, cell, true})
			}
			open = false
		case open && !newBlock.MatchString(line):
			all[len(all)-1].text += "\n" + line
		default:
			all = append(all, passage{line: i + 1, text: line})
			open = !strings.HasPrefix(line, "#")
		}
	}
	return all
}

// comments returns the passages in the comments of a file in YAML. Lines of comment below one another are one
// passage. Of the example of a key, which is a comment itself, the comment behind it counts.
func comments(file string) (all []passage) {
	column := -1 // of the comment on the line before
	for i, line := range strings.Split(file, "\n") {
		at := strings.LastIndex(line, "# ")
		if at < 0 {
			column = -1
			continue
		}
		if at == column && strings.TrimSpace(line[:at]) == "" {
			all[len(all)-1].text += "\n" + line[at+2:]
			continue
		}
		all, column = append(all, passage{line: i + 1, text: line[at+2:]}), at
	}
	return all
}

// longTexts returns a line for each sentence and each cell that is too long.
func longTexts(all []passage) (faults []string) {
	for _, p := range all {
		if n := words(p.text); p.cell && n > cellWords {
			faults = append(faults, fmt.Sprintf("%d: a cell of %d words, at most %d", p.line, n, cellWords))
		}
		rest, line := p.text, p.line
		for rest != "" {
			sentence := rest
			if end := ends.FindStringIndex(rest); end != nil {
				sentence = rest[:end[1]]
			}
			rest = rest[len(sentence):]
			if n := words(sentence); n > sentenceWords {
				faults = append(faults, fmt.Sprintf("%d: a sentence of %d words, at most %d: %s", line, n, sentenceWords, strings.Join(strings.Fields(sentence), " ")))
			}
			line += strings.Count(sentence, "\n")
		}
	}
	return faults
}

// words counts the words that a reader sees: a link is its text, and a mark alone is no word.
func words(text string) int {
	text = strings.ReplaceAll(text, "\n", " ")
	return len(slices.DeleteFunc(strings.Fields(link.ReplaceAllString(text, "$1")), func(word string) bool {
		return strings.Trim(word, "-–—*+|¦>#=") == ""
	}))
}

// TestLongTexts has a sentence and a cell of each kind that TestWords must report.
func TestLongTexts(t *testing.T) {
	long, half := strings.TrimSpace(strings.Repeat("word ", sentenceWords+1)), strings.TrimSpace(strings.Repeat("word ", sentenceWords-10))
	for _, test := range []struct {
		text string
		want []int // lines of faults
	}{
		{"# Title\n\n" + half + ".\n" + half + ".\n", nil},
		{"# Title\n\n" + half + ". (" + half + ".) " + half + "?\n", nil},
		{"# Title\n\n" + long + ".\n", []int{3}},
		{"Short.\nShort. " + long + ".\n", []int{2}},
		{half + "\n" + half + ".\n", []int{1}},
		{"- " + half + "\n- " + half + "\n", nil},
		{"1. " + half + "\n   " + half + "\n", []int{1}},
		{"| a | b |\n|---|---|\n| " + half + " | " + half + ". " + half + " |\n", []int{3}},
		{"```\n" + long + "\n```\n", nil},
		{"`" + long + "`\n", []int{1}},
		{strings.Repeat("[two words](page.md#a) ", sentenceWords/2) + "\n", nil},
	} {
		if got := longTexts(texts(test.text)); !slices.Equal(lines(got), test.want) {
			t.Errorf("%q: got %q, want faults on the lines %v", test.text, got, test.want)
		}
	}
	yaml := "# " + half + "\n# " + half + "\n\nkey: a # " + half + "\nkey: a # " + half + "\n#  - key: " + long + " # " + long + "\nkey: " + long + "\n"
	if got, want := lines(longTexts(comments(yaml))), []int{1, 6}; !slices.Equal(got, want) {
		t.Errorf("in YAML: got faults on the lines %v, want %v", got, want)
	}
}

// lines returns the line numbers with which faults begin.
func lines(faults []string) (numbers []int) {
	for _, fault := range faults {
		var n int
		fmt.Sscanf(fault, "%d:", &n)
		numbers = append(numbers, n)
	}
	return numbers
}
