package robotstxt

import "strings"

// A Line is one line of a robots.txt as it was served.
type Line struct {
	Number int // 1-based
	Text   string
}

// Around returns a line with up to n lines before and after it. It returns none of a file with
// NUL bytes, which is in UTF-16 or broken.
func (f *File) Around(line, n int) (lines []Line) {
	if strings.ContainsRune(f.body, 0) {
		return nil
	}
	all := strings.Split(strings.TrimSuffix(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(f.body), "\n"), "\n")
	for i := max(line-n, 1); i <= min(line+n, len(all)); i++ {
		lines = append(lines, Line{i, all[i-1]})
	}
	return lines
}
