-- Health of what is only written down: nobody reconciles it, so that it is there or not.
if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "being deleted" }
end
return { status = "Healthy", message = "" }
