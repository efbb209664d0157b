-- Run by `nvim --headless -l driver.lua TASKS RESULTS`: one buffer a task, what it holds at the end.

local tasks_path, results_path = _G.arg[1], _G.arg[2]
local tasks = vim.json.decode(table.concat(vim.fn.readfile(tasks_path), "\n"), {
  luanil = { object = true },
})
local WAIT_MS = 60000
vim.o.fixendofline = false
vim.o.swapfile = false
vim.o.hidden = true

local shown, asked = {}, {}
vim.notify = function(message, level)
  shown[#shown + 1] = { message = message, level = level }
end

local choose = nil
vim.ui.select = function(items, prompt, on_choice)
  local titles = vim.tbl_map((prompt or {}).format_item or tostring, items)
  asked[#asked + 1] = titles
  if choose == nil then
    on_choice(nil, nil)
  else
    on_choice(items[choose], choose)
  end
end

local finished = nil
vim.api.nvim_create_autocmd("User", {
  pattern = "ApplyServiceResult",
  callback = function(event)
    finished = event.data
  end,
})

local function text_of(bufnr)
  local ending = ({ unix = "\n", dos = "\r\n", mac = "\r" })[vim.bo[bufnr].fileformat]
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, true)
  local text = table.concat(lines, ending)
  return vim.bo[bufnr].endofline and text .. ending or text
end

local results = {}

local function run_all()
  for number, task in ipairs(tasks) do
    shown, asked, finished, choose = {}, {}, nil, task.choose
    vim.cmd.edit({ vim.fn.fnameescape(task.path), bang = true })
    local bufnr = vim.api.nvim_get_current_buf()
    vim.fn.setreg("a", task.update or "")
    for _, command in ipairs(task.commands) do
      finished = nil
      if command.choose ~= nil then
        choose = command.choose
      end
      vim.cmd(command.run)
      if not command.is_immediate then
        assert(vim.wait(WAIT_MS, function() return finished ~= nil end, 2), task.path)
      end
    end
    local target = finished and finished.bufnr or bufnr
    results[number] = {
      text = text_of(target),
      source = text_of(bufnr),
      result = finished and finished.result or vim.NIL,
      shown = shown,
      asked = asked,
      diagnostics = vim.tbl_map(function(one)
        return { line = one.lnum, message = one.message }
      end, vim.diagnostic.get(target)),
    }
  end
  local file = assert(io.open(results_path, "w"))
  file:write(vim.json.encode(results))
  file:close()
end

local is_good, failure = xpcall(run_all, debug.traceback)
if not is_good then
  io.stderr:write(failure)
  vim.cmd.cquit()
end
vim.cmd.qall({ bang = true })
