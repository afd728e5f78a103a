// Package levenshtein computes edit distances between strings, for "did you mean"
// suggestions. It is pure.
package levenshtein

import "strings"

// Distance is the case-insensitive Levenshtein distance: the number of bytes to
// insert, delete or replace to turn one text into the other.
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
