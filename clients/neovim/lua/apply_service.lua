--- Applies lazy updates to buffers, by the language server `apply-service lsp`.
---
--- The server's questions are answered with `vim.ui.select`. Each command ends in one autocommand
--- `User ApplyServiceResult`, whose data are the buffer and what the server said.

local M = {}

local APPLY, APPLY_SELECTION = "apply-service.apply", "apply-service.applySelection"
local START_MS, POLL_MS = 20000, 20

---@class apply_service.Options
---@field cmd string[] starts the language server
---@field url string|nil the service that answers; without one edits are merged without a model
---@field key string|nil the service's key
---@field register string where `:Apply` finds the update
local options = { cmd = { "apply-service", "lsp" }, register = "+" }

--- What was asked for each buffer whose question has not been answered.
local pending = {}

local function tell(message, level)
  vim.notify("apply-service: " .. message, level)
end

--- Reads options; those that are left out stay as they are.
---@param changes apply_service.Options|nil
function M.setup(changes)
  for name in pairs(changes or {}) do
    if not vim.tbl_contains({ "cmd", "url", "key", "register" }, name) then
      error(("apply_service.setup knows no %q; it knows cmd, url, key and register"):format(name))
    end
  end
  options = vim.tbl_extend("force", options, changes or {})
end

--- Takes an edit of the server. Neovim would add an empty line behind what is inserted after the
--- last line, so a line end that closes the buffer is left out.
local function take_edit(failure, params, ...)
  local function mend(uri, edits)
    local num_lines = vim.api.nvim_buf_line_count(vim.uri_to_bufnr(uri))
    for _, edit in ipairs(edits) do
      if edit.range.start.line >= num_lines then
        edit.newText = edit.newText:gsub("\r?\n$", "")
      end
    end
  end
  for _, change in ipairs(params.edit.documentChanges or {}) do
    mend(change.textDocument.uri, change.edits)
  end
  for uri, edits in pairs(params.edit.changes or {}) do
    mend(uri, edits)
  end
  return vim.lsp.handlers["workspace/applyEdit"](failure, params, ...)
end

--- The language server's client for a buffer, started if there is none.
local function client_of(bufnr)
  local name = vim.api.nvim_buf_get_name(bufnr)
  local git = vim.fs.find(".git", { upward = true, path = vim.fs.dirname(name) })[1]
  local id = vim.lsp.start({
    name = "apply-service",
    cmd = options.cmd,
    cmd_env = { APPLY_SERVICE_URL = options.url, APPLY_API_KEY = options.key },
    handlers = { ["workspace/applyEdit"] = take_edit },
    root_dir = git and vim.fs.dirname(git) or vim.fn.getcwd(),
  }, { bufnr = bufnr })
  return id and vim.lsp.get_client_by_id(id)
end

local function when_ready(client, run)
  local waited = 0
  local function look()
    if client.initialized then
      run()
    elseif waited >= START_MS or (client.is_stopped and client:is_stopped()) then
      tell(table.concat(options.cmd, " ") .. " did not start; see :LspLog", vim.log.levels.ERROR)
    else
      waited = waited + POLL_MS
      vim.defer_fn(look, POLL_MS)
    end
  end
  look()
end

local function finish(bufnr, request, result)
  local is_open = result.choices and #result.choices > 0 and not result.has_changed
  pending[bufnr] = is_open and vim.tbl_extend("force", request, { choices = result.choices }) or nil
  if result.has_changed then
    tell(result.message, vim.log.levels.INFO)
  elseif is_open then
    tell(result.message .. "; :ApplyChoices asks again", vim.log.levels.WARN)
  elseif result.status ~= "failed" and result.status ~= "rejected" then
    tell(result.message, vim.log.levels.WARN) -- of the others the server has told
  end
  vim.api.nvim_exec_autocmds("User", {
    pattern = "ApplyServiceResult",
    data = { bufnr = bufnr, result = result },
  })
end

--- Sends a command to the server; its result ends it.
local function execute(bufnr, request)
  if vim.api.nvim_buf_get_name(bufnr) == "" then
    tell("the buffer has no name; give it one with :file NAME", vim.log.levels.ERROR)
    return
  end
  local client = client_of(bufnr)
  if not client then
    tell(table.concat(options.cmd, " ") .. " cannot be started", vim.log.levels.ERROR)
    return
  end
  local arguments = vim.list_extend({ vim.uri_from_bufnr(bufnr) }, request.arguments)
  arguments[#arguments + 1] = request.resolve and { resolve = request.resolve } or vim.empty_dict()
  local params = { command = request.command, arguments = arguments }
  local function done(failure, result)
    if failure then
      result = { status = "failed", message = failure.message }
      tell(failure.message, vim.log.levels.ERROR)
    end
    finish(bufnr, request, result)
  end
  when_ready(client, function()
    local method = "workspace/executeCommand"
    if vim.fn.has("nvim-0.11") == 1 then
      client:request(method, params, done, bufnr)
    else
      client.request(method, params, done, bufnr)
    end
  end)
end

--- Applies an update to a buffer.
---@param update string
---@param bufnr integer|nil the current one if left out
function M.apply(update, bufnr)
  bufnr = (bufnr == nil or bufnr == 0) and vim.api.nvim_get_current_buf() or bufnr
  execute(bufnr, { command = APPLY, arguments = { update } })
end

--- Applies the update in a register.
---@param register string|nil the one of the options if left out
function M.apply_register(register)
  register = (register ~= nil and register ~= "") and register or options.register
  local update = vim.fn.getreg(register)
  if update == "" then
    tell(('register "%s is empty; yank an update first'):format(register), vim.log.levels.ERROR)
    return
  end
  M.apply(update)
end

--- Applies the update in some lines of the current buffer, to the same buffer or to a file.
---@param first integer the first line, counted from 1
---@param last integer the last line
---@param path string|nil the file; without it the lines are taken out of the buffer
function M.apply_lines(first, last, path)
  local source = vim.api.nvim_get_current_buf()
  if path == nil then
    local range = {
      start = { line = first - 1, character = 0 },
      ["end"] = { line = last, character = 0 },
    }
    local uri = vim.uri_from_bufnr(source)
    execute(source, { command = APPLY_SELECTION, arguments = { uri, range } })
    return
  end
  local lines = vim.api.nvim_buf_get_lines(source, first - 1, last, true)
  local target = vim.fn.bufadd(path)
  vim.fn.bufload(target)
  vim.bo[target].buflisted = true
  M.apply(table.concat(lines, "\n") .. "\n", target)
end

local function describe(choice)
  local where = choice.where.symbol or ("line " .. choice.where.start_line)
  return ("%s (%.0f %%): %s"):format(where, 100 * choice.probability, choice.reason)
end

--- Asks again which result of the buffer's last update is meant.
---@param bufnr integer|nil the current one if left out
function M.choose(bufnr)
  bufnr = (bufnr == nil or bufnr == 0) and vim.api.nvim_get_current_buf() or bufnr
  local request = pending[bufnr]
  if not request then
    tell("no question is open for this buffer", vim.log.levels.WARN)
    return
  end
  local prompt = { prompt = "Which result is meant?", format_item = describe }
  vim.ui.select(request.choices, prompt, function(choice)
    if choice then
      execute(bufnr, vim.tbl_extend("force", request, { resolve = choice.id }))
    end
  end)
end

return M
