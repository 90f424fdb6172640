package robotstxt

import "strings"

// A Line is one line of a robots.txt as it was served.
type Line struct {
	Number int // 1-based
	Text   string
}

// Lines returns the lines of the body, without their ends. It returns none of a file with NUL bytes,
// which is in UTF-16 or broken.
func Lines(body string) []string {
	if body == "" || strings.ContainsRune(body, 0) {
		return nil
	}
	return strings.Split(strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body), "\n"), "\n")
}

// Around returns a line with up to n lines before and after it, as far as [Lines] returns them.
func (f *File) Around(line, n int) (lines []Line) {
	all := Lines(f.body)
	for i := max(line-n, 1); i <= min(line+n, len(all)); i++ {
		lines = append(lines, Line{i, all[i-1]})
	}
	return lines
}
