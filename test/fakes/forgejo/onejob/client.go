package onejob

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/steading-dev/steading/test/fakes/forgejo/internal/wire"
)

// call a procedure. The error is a [wire.Error] when the server gave it.
func call[Req, Res any](ctx context.Context, r *runner, name string, req Req) (Res, error) {
	var res Res
	raw, err := json.Marshal(req)
	if err != nil {
		return res, err
	}
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(r.URL, "/")+wire.Base+name, bytes.NewReader(raw))
	if err != nil {
		return res, err
	}
	hr.Header.Set("Content-Type", "application/json")
	hr.Header.Set(wire.HeaderUUID, r.UUID)
	hr.Header.Set(wire.HeaderToken, r.Token)
	hr.Header.Set(wire.HeaderRequestKey, r.key)
	answer, err := r.Client.Do(hr)
	if err != nil {
		return res, err
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return res, err
	case answer.StatusCode != http.StatusOK:
		said := &wire.Error{}
		if json.Unmarshal(body, said) != nil || said.Code == "" {
			return res, errors.New(answer.Status)
		}
		return res, said
	}
	if err := json.Unmarshal(body, &res); err != nil {
		return res, fmt.Errorf("cannot read the answer: %w", err)
	}
	return res, nil
}
