// The filter that `cargo xtask extend` measures, as the one in Rust: `empty` is called and does
// nothing, `fields` adds a field to requests and responses.
package main

import (
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
	addsFields bool
}

func (p *plugin) OnPluginStart(int) types.OnPluginStartStatus {
	work, err := proxywasm.GetPluginConfiguration()
	p.addsFields = string(work) == "fields"
	if err != nil || !p.addsFields && string(work) != "empty" {
		proxywasm.LogCriticalf("the configuration is neither `empty` nor `fields`: %q, %v", work, err)
		return types.OnPluginStartStatusFailed
	}
	return types.OnPluginStartStatusOK
}

func (p *plugin) NewHttpContext(uint32) types.HttpContext {
	return &stream{addsFields: p.addsFields}
}

type stream struct {
	types.DefaultHttpContext
	addsFields bool
}

func (s *stream) OnHttpRequestHeaders(int, bool) types.Action {
	if s.addsFields {
		if err := proxywasm.AddHttpRequestHeader("x-probe", "request"); err != nil {
			proxywasm.LogErrorf("cannot add a field: %v", err)
		}
	}
	return types.ActionContinue
}

func (s *stream) OnHttpResponseHeaders(int, bool) types.Action {
	if s.addsFields {
		if err := proxywasm.AddHttpResponseHeader("x-probe", "response"); err != nil {
			proxywasm.LogErrorf("cannot add a field: %v", err)
		}
	}
	return types.ActionContinue
}
