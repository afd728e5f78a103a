package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

// check is the program of `helm test`: the image contains no other.
func check() *cobra.Command {
	var (
		url     string
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use: "check", Short: "Wait until a URL answers with status 200",
		Example: "  lifeboatd check --url http://lifeboat-controller.lifeboat-system.svc:8080/metrics",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if url == "" {
				return errors.New("--url is empty: write the URL to check")
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			if err := awaitOK(ctx, url); err != nil {
				return fmt.Errorf("no answer with status 200 within %s: %w", timeout, err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), url, "answers")
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "", "URL to request")
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "time after which the check fails")
	return cmd
}

// awaitOK requests the URL each second. It returns the last error when ctx ends.
func awaitOK(ctx context.Context, url string) error {
	for {
		err := getOK(ctx, url)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Second):
		}
	}
}

func getOK(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %s", url, resp.Status)
	}
	return nil
}
