// Package view turns objects of the API into what the pages of the console show. It is pure.
package view
