package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"countersign/internal/problem"
)

// answerBytesMax bounds what is read of one answer.
const answerBytesMax = 32 << 20

// client talks to a server's API.
type client struct {
	base, token string
	http        http.Client
}

func (p place) client() *client {
	return &client{base: strings.TrimSuffix(p.Server, "/") + "/api/v1", token: p.Token, http: http.Client{Timeout: 90 * time.Second}}
}

// call sends one request and decodes the answer into out, unless that is nil.
func (c *client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return fmt.Errorf("the server's address cannot be used: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("the server does not answer: %w", err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, answerBytesMax))
	if err != nil {
		return fmt.Errorf("the answer broke off: %w", err)
	}
	if res.StatusCode >= 300 {
		return refusal(res.StatusCode, raw)
	}
	if out == nil {
		return nil
	}
	if blob, ok := out.(*[]byte); ok {
		*blob = raw
		return nil
	}
	return json.Unmarshal(raw, out)
}

// refusal turns a problem document back into the problem it was.
func refusal(status int, raw []byte) error {
	var p struct {
		Code, Detail string
		Errors       []problem.Field
	}
	if json.Unmarshal(raw, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the server answered %d %s", status, http.StatusText(status))
	}
	return &problem.Error{Kind: problem.Conflict, Code: p.Code, Message: p.Detail, Fields: p.Errors}
}

// escape makes an id safe in a path.
func escape(id string) string { return url.PathEscape(id) }
