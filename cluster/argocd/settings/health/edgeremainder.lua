-- Health of what a deleted environment left behind outside: the provider goes on trying to remove it, and then the record.
local left = (obj.status or {}).left or {}
if #left > 0 then
  return { status = "Degraded", message = "left behind, and tried again: " .. table.concat(left, "; ") }
end
return { status = "Progressing", message = "looking for what is left" }
