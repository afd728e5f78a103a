// Package likeness measures how alike two texts are, to find what a slip of
// somebody's fingers stands for. It is pure.
package likeness

import "strings"

// Distance is the Levenshtein distance between two texts, whatever their case:
// how many bytes to insert, delete or replace make one of the other.
func Distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			substitution := diagonal
			if a[i] != b[j] {
				substitution++
			}
			diagonal = row[j+1]
			row[j+1] = min(substitution, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
