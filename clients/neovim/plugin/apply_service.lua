if vim.g.loaded_apply_service then
  return
end
vim.g.loaded_apply_service = true

vim.api.nvim_create_user_command("Apply", function(command)
  if command.range > 0 then
    require("apply_service").apply_lines(command.line1, command.line2)
  else
    require("apply_service").apply_register(command.args)
  end
end, { nargs = "?", range = true, desc = "Apply the update in a register, or in the lines" })

vim.api.nvim_create_user_command("ApplyTo", function(command)
  require("apply_service").apply_lines(command.line1, command.line2, command.args)
end, { nargs = 1, range = "%", complete = "file", desc = "Apply the update in the lines to a file" })

vim.api.nvim_create_user_command("ApplyChoices", function()
  require("apply_service").choose()
end, { desc = "Ask again which result of the last update is meant" })
