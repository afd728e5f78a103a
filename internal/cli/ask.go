package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// ask asks a person something and returns the line that is typed, with what ends it. Ctrl-C
// ends it as it ends all else, by ctx: what is read from a terminal cannot be called off, so
// it is read beside, and left behind.
func (s *session) ask(ctx context.Context, keyboard *bufio.Reader, question string) (string, error) {
	s.err.Printf("%s", question)
	type line struct {
		text string
		err  error
	}
	typed := make(chan line, 1)
	go func() {
		text, err := keyboard.ReadString('\n')
		typed <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		s.err.Printf("\n")
		return "", ctx.Err()
	case l := <-typed:
		if l.err != nil && l.text == "" {
			return "", fmt.Errorf("reading the answer: %w", l.err)
		}
		return l.text, nil
	}
}

// goOn asks whether to do what is about to be done, and returns an error if not. Where
// nobody can be asked, --yes has to say it.
func (s *session) goOn(ctx context.Context, keyboard *bufio.Reader, what, nobody string) error {
	if !s.typing {
		return usageErrorf("%sthere is nobody to ask: add --yes if you mean it. %s", nobody, what)
	}
	answer, err := s.ask(ctx, keyboard, what+"\nGo on? [y/N] ")
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return fmt.Errorf("not confirmed: nothing was done")
}
