// A filter for tests: the path of a request says what it does with it and with its response.
package main

import (
	"bytes"
	"strings"

	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm"
	"github.com/proxy-wasm/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() {
	proxywasm.SetVMContext(&vm{})
}

type vm struct {
	types.DefaultVMContext
}

func (*vm) NewPluginContext(uint32) types.PluginContext {
	return &plugin{}
}

type plugin struct {
	types.DefaultPluginContext
	greeting string
	requests proxywasm.MetricCounter
}

func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	text, err := proxywasm.GetPluginConfiguration()
	if err != nil && err != types.ErrorStatusNotFound {
		proxywasm.LogCriticalf("no configuration: %v", err)
		return types.OnPluginStartStatusFailed
	}
	p.greeting = string(text)
	p.requests = proxywasm.DefineCounterMetric("requests")
	return types.OnPluginStartStatusOK
}

func (p *plugin) NewHttpContext(uint32) types.HttpContext {
	return &stream{plugin: p}
}

type stream struct {
	types.DefaultHttpContext
	plugin *plugin
	path   string
}

func (s *stream) OnHttpRequestHeaders(int, bool) types.Action {
	s.plugin.requests.Increment(1)
	s.path, _ = proxywasm.GetHttpRequestHeader(":path")
	if err := proxywasm.AddHttpRequestHeader("x-filter", "go"); err != nil {
		proxywasm.LogErrorf("cannot add a field: %v", err)
	}
	if strings.HasPrefix(s.path, "/deny") {
		fields := [][2]string{{"x-by", "go"}}
		if err := proxywasm.SendHttpResponse(403, fields, []byte("denied"), -1); err != nil {
			proxywasm.LogErrorf("cannot respond: %v", err)
		}
		return types.ActionPause
	}
	if strings.HasPrefix(s.path, "/call") {
		fields := [][2]string{{":method", "GET"}, {":path", "/check"}, {":authority", "auth"}}
		if _, err := proxywasm.DispatchHttpCall("auth", fields, nil, nil, 5000, s.checked); err != nil {
			proxywasm.LogErrorf("cannot call: %v", err)
			return types.ActionContinue
		}
		return types.ActionPause
	}
	return types.ActionContinue
}

func (s *stream) checked(_, size, _ int) {
	body, _ := proxywasm.GetHttpCallResponseBody(0, size)
	_ = proxywasm.AddHttpRequestHeader("x-user", string(body))
	_ = proxywasm.ResumeHttpRequest()
}

func (s *stream) OnHttpRequestBody(size int, end bool) types.Action {
	if !strings.HasPrefix(s.path, "/whole") {
		return types.ActionContinue
	}
	if !end {
		return types.ActionPause
	}
	body, err := proxywasm.GetHttpRequestBody(0, size)
	if err != nil {
		proxywasm.LogErrorf("no content: %v", err)
		return types.ActionContinue
	}
	if err := proxywasm.ReplaceHttpRequestBody(bytes.ToUpper(body)); err != nil {
		proxywasm.LogErrorf("cannot replace the content: %v", err)
	}
	return types.ActionContinue
}

func (s *stream) OnHttpResponseHeaders(int, bool) types.Action {
	_ = proxywasm.AddHttpResponseHeader("x-greeting", s.plugin.greeting)
	return types.ActionContinue
}
