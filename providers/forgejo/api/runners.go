package api

import (
	"context"
	"fmt"
	"net/http"
)

const (
	// pageSize is the most that Forgejo gives unless it is told otherwise.
	pageSize = 50
	// maxPages of runners are read.
	maxPages = 100
	// maxStale pages in a row may hold nothing new. The order changes while it is read, but not by three pages.
	maxStale = 3
)

// Runners of the scope, each once, in no order. For the instance they are those of all scopes. One that is not among them
// may be there all the same: see the package's text.
//
// It reads until a page is empty, one request more than there are pages. A short page is not the last where an operator has
// set smaller ones, and the total that comes with each is not believed.
func (c *Client) Runners(ctx context.Context) ([]Runner, error) {
	var (
		all   []Runner
		seen  = map[int64]bool{}
		stale int
	)
	for n := 1; n <= maxPages; n++ {
		page, err := c.page(ctx, n, pageSize)
		switch {
		case err != nil:
			return nil, c.wrap("list the runners", c.explain(ctx, err))
		case len(page) == 0:
			return all, nil
		}
		stale++
		for _, r := range page {
			if !seen[r.ID] {
				seen[r.ID] = true
				all = append(all, r)
				stale = 0
			}
		}
		if stale == maxStale {
			return nil, c.wrap("list the runners", failed(ErrNotForgejo, "its pages repeat: check what stands in front of it"))
		}
	}
	return nil, c.wrap("list the runners", failed(ErrUnavailable, "there are more than %d pages of them: delete runners that are not used", maxPages))
}

// page of the runners, counted from 1.
func (c *Client) page(ctx context.Context, n, size int) ([]Runner, error) {
	var page []Runner
	path := fmt.Sprintf("%s?page=%d&limit=%d", c.scope.prefix(), n, size)
	err := c.do(ctx, call{operation: OperationRunners, method: http.MethodGet, path: path, want: http.StatusOK, decode: func(body []byte) error {
		return decodeList(body, &page)
	}})
	return page, err
}
